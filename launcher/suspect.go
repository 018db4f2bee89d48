package launcher

import (
	"context"
	"errors"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/zkmodel"
)

// trust says which uploads nodes boot from.
func (s *session) trust() node.Trust { return node.Trust{Boots: s.boots, Uploads: uploads{s}} }

// uploads are those that a session sees, and marks.
type uploads struct{ *session }

// Image implements node.Uploads.
func (u uploads) Image(name string) *zkmodel.Image { return u.mirror.Image(name) }

// Mark implements node.Uploads. The mark outlives the launch that has it made.
func (u uploads) Mark(key zkmodel.UploadKey, why string) {
	ctx := u.store.Session().Context()
	u.jobs.Start(inflight.Mark(key.Path()), func() error { return u.markSuspect(ctx, key, why) })
}

// Clear implements node.Uploads.
func (u uploads) Clear(key zkmodel.UploadKey) { u.Mark(key, "") }

// markSuspect writes into an upload why it is suspect, or that it is not.
func (s *session) markSuspect(ctx context.Context, key zkmodel.UploadKey, why string) error {
	lock, u, err := s.store.LockUpload(ctx, key)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if u.State == zkmodel.UploadReady && (u.Suspect == "") != (why == "") {
		u.Suspect = why
		switch err = s.store.SaveUpload(ctx, lock, u); {
		case err != nil: // the job is done again
		case why == "":
			s.log.Info("Image boots and is not suspect any more", "upload", key.Path())
		default:
			s.log.Warn("Image is suspect", "upload", key.Path(), "why", why)
		}
	}
	return errors.Join(err, lock.Release(ctx))
}
