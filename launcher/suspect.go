package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// suspectAfter is how many boots in a row must fail before an older build is
// tried instead. When that one boots, the newer one is to blame and is marked
// suspect in its record, for all launchers and for people to see.
const suspectAfter = 3

// boots counts the boots in a row that failed, by the path of the upload.
type boots struct {
	mu     sync.Mutex
	failed map[string]int
}

func newBoots() *boots { return &boots{failed: map[string]int{}} }

// note takes the outcome of a boot over. It is no outcome when the image had no
// part in it.
func (b *boots) note(path string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		delete(b.failed, path)
	case errors.Is(err, providers.ErrNodeFailed), errors.Is(err, ErrKeyScan), errors.Is(err, context.DeadlineExceeded):
		b.failed[path]++
	}
}

// missing notes that the cloud does not have an upload: it need not be tried
// again.
func (b *boots) missing(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[path] = suspectAfter
}

// count is how many boots in a row have failed.
func (b *boots) count(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed[path]
}

// doubted tells whether nodes should rather boot from an older build.
func (l *Launcher) doubted(u *zkmodel.Upload) bool {
	return u.Suspect != "" || l.boots.count(u.Path()) >= suspectAfter
}

// booted notes that a node has booted from an upload. What is newer and would not
// boot is suspect then; what was suspect and boots is not.
func (s *shift) booted(path string) {
	s.boots.note(path, nil)
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return // a cloud image
	}
	ctx := s.store.Session().Context() // the mark outlives the launch
	for u := range ready([]*zkmodel.Image{s.mirror.Image(key.Image)}, key.Image, key.Provider) {
		why := ""
		if u.UploadKey != key {
			if s.boots.count(u.Path()) < suspectAfter {
				continue
			}
			why = fmt.Sprintf("suspect: failed to boot %d times in a row, while build %s boots", suspectAfter, key.Build)
		}
		if (u.Suspect == "") != (why == "") {
			s.jobs.start("suspect "+u.Path(), func() error { return s.markSuspect(ctx, u.UploadKey, why) })
		}
		if u.UploadKey == key {
			return
		}
	}
}

// imageMissing notes that the cloud does not have an upload that its record says
// is ready. The mark tells all launchers, and the builder, which looks itself.
func (s *shift) imageMissing(path string) {
	key, err := zkmodel.ParseUploadPath(path)
	if err != nil {
		return // a cloud image
	}
	s.boots.missing(path)
	ctx := s.store.Session().Context() // the mark outlives the launch
	s.jobs.start("suspect "+path, func() error {
		return s.markSuspect(ctx, key, "suspect: the cloud says that it does not have it")
	})
}

// markSuspect writes into an upload why it is suspect, or that it is not.
func (s *shift) markSuspect(ctx context.Context, key zkmodel.UploadKey, why string) error {
	lock, u, err := s.store.LockUpload(ctx, key)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if u.State == zkmodel.UploadReady && (u.Suspect == "") != (why == "") {
		u.Suspect = why
		err = s.store.SaveUpload(ctx, lock, u)
		s.log.Warn("Image is suspect", "upload", key.Path(), "why", why)
	}
	return errors.Join(err, lock.Release(ctx))
}

// otherImage tells whether the next attempt would boot from another image than
// the last one did.
func (s *shift) otherImage(h *handling, n *handled) bool {
	key, err := zkmodel.ParseUploadPath(n.node.ImageID)
	if err != nil {
		return false
	}
	next := trusted([]*zkmodel.Image{s.mirror.Image(key.Image)}, key.Image, h.pool.provider.Name, s.doubted)
	return next != nil && next.UploadKey != key
}
