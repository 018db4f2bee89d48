package launch

import (
	"context"
	"errors"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/zkmodel"
)

// trust says which uploads nodes boot from.
func (l *Launches) trust() node.Trust { return node.Trust{Boots: l.Boots, Uploads: uploads{l}} }

// uploads are those that the launches see, and mark.
type uploads struct{ *Launches }

// Image implements node.Uploads.
func (u uploads) Image(name string) *zkmodel.Image { return u.Launches.Image(name) }

// Mark implements node.Uploads. The mark outlives the launch that has it made.
func (u uploads) Mark(key zkmodel.UploadKey, why string) {
	ctx := u.Store.Session().Context()
	u.Jobs.Start(inflight.Mark(key.Path()), func() error { return u.markSuspect(ctx, key, why) })
}

// Clear implements node.Uploads.
func (u uploads) Clear(key zkmodel.UploadKey) { u.Mark(key, "") }

// markSuspect writes into an upload why it is suspect, or that it is not.
func (l *Launches) markSuspect(ctx context.Context, key zkmodel.UploadKey, why string) error {
	lock, u, err := l.Store.LockUpload(ctx, key)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if u.State == zkmodel.UploadReady && (u.Suspect == "") != (why == "") {
		u.Suspect = why
		switch err = l.Store.SaveUpload(ctx, lock, u); {
		case err != nil: // the job is done again
		case why == "":
			l.Log.Info("Image boots and is not suspect any more", "upload", key.Path())
		default:
			l.Log.Warn("Image is suspect", "upload", key.Path(), "why", why)
		}
	}
	return errors.Join(err, lock.Release(ctx))
}
