package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/leak"
	"poolkeeper/zkmodel/recipe"
)

// A search for leaked images finds what carries our marks and has no record. What
// is found is kept in the tree: it takes two searches, of whatever builders, with
// LeakAge between them by ZooKeeper's clock, before an image is deleted.
const firstSearch = 30 * time.Second // after a start, at most

// Patrol looks for leaked images in all clouds, now and then, and sooner in a
// cloud that is said to lack an image.
func (w *Worker) Patrol(ctx context.Context) {
	next := clock.NewTimer(ctx, min(w.LeakAge, firstSearch))
	defer next.Stop()
	soon := clock.NewTicker(ctx, min(w.LeakAge, doubtEvery))
	defer soon.Stop()
	for {
		every := true
		select {
		case <-next.C:
			next.Reset(w.LeakAge + w.LeakAge/20) // so that the second finds it old enough
		case <-soon.C:
			every = false
		case <-ctx.Done():
			return
		}
		cfg, images := w.Config(), w.Tree.Images()
		var all sync.WaitGroup // a cloud that hangs holds up the next round, and no other cloud in this
		for i := range cfg.Providers {
			name := cfg.Providers[i].Name
			if cfg.FrozenProvider(name) == "" && (every || len(doubted(images, name)) > 0) {
				all.Go(func() {
					if err := w.lookForLeaks(ctx, cfg, name); err != nil && ctx.Err() == nil && !Held(err) {
						w.Log.Warn("Cannot look for leaked images", "provider", name, "error", err)
					}
				})
			}
		}
		all.Wait()
	}
}

// lookForLeaks deletes what carries our marks, and has no record, in the second
// search that finds it so. One builder searches at a time. A search that fails
// has all findings forgotten.
func (w *Worker) lookForLeaks(ctx context.Context, cfg *configs.Config, provider string) error {
	cloud, done, err := w.use(cfg, provider)
	if err != nil {
		return err
	}
	defer done()
	if !cloud.storesImages() {
		return nil
	}
	lock, err := recipe.NewLock(w.Store.Session(), zkmodel.LeakLockPath(provider), w.FQDN, recipe.EnsureParents()).Try(ctx)
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	defer w.Hold(zkmodel.LeakLockPath(provider))()
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	images, err := w.orphans(ctx, cloud, provider)
	if err != nil {
		last, cancel := cleanupContext(ctx)
		defer cancel()
		return errors.Join(err, w.Store.SaveFindings(last, lock, provider, nil))
	}
	if len(images) == 0 {
		return w.Store.SaveFindings(ctx, lock, provider, nil)
	}
	before, now, err := w.Store.Findings(ctx, lock, provider)
	if err != nil {
		return err
	}
	found, proven := leak.Confirm(images, func(i providers.Image) string { return i.ExternalID }, before, now, w.LeakAge)
	if plan.Adrift(w.ClockOff()) {
		proven = nil // left to builders whose clock is right
	}
	for _, image := range proven {
		failed := w.removeLeak(ctx, cloud, image)
		if failed == nil {
			delete(found, image.ExternalID)
		}
		err = errors.Join(err, failed)
	}
	return errors.Join(err, w.Store.SaveFindings(ctx, lock, provider, found))
}

// orphans lists the images in a cloud that look leaked; what the cloud lacks of
// ours is sent again.
func (w *Worker) orphans(ctx context.Context, cloud lent, provider string) ([]providers.Image, error) {
	images, err := leak.List(ctx, "images", cloud.ListImages, w.Tree, zkmodel.ImagesRoot)
	if errors.Is(err, providers.ErrNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := w.forgetLost(ctx, provider, images); err != nil {
		return nil, err
	}
	defer w.Deciding(ctx)()
	cfg := w.Config() // which may be another than when the cloud was asked
	return slices.DeleteFunc(images, func(i providers.Image) bool { return !w.leaked(cfg, provider, i) }), nil
}

// leaked reports whether an image looks leaked, in a provider that a configuration still has.
func (w *Worker) leaked(cfg *configs.Config, provider string, image providers.Image) bool {
	_, there := cfg.Provider(provider)
	return there && cfg.FrozenProvider(provider) == "" && cfg.FrozenUpload(provider, image.Metadata[providers.MetaImage]) == "" &&
		w.isOrphan(provider, image)
}

// proveLeak decides, right before an image is deleted, that it is leaked: its upload has no
// record, or one that names another image. done gives the lock of that back.
//
// Errors: ErrStale, when a configuration that came since has other plans, or the record has changed; as Absent.
func (w *Worker) proveLeak(ctx context.Context, key zkmodel.UploadKey, image providers.Image) (proof zkmodel.Proof, done func(), err error) {
	defer w.Deciding(ctx)()
	stale := fmt.Errorf("delete leaked image %s: %w", image.ExternalID, ErrStale)
	if !w.leaked(w.Config(), key.Provider, image) {
		return proof, nil, stale
	}
	lock, upload, err := w.Store.LockUpload(ctx, key)
	if errors.Is(err, zkmodel.ErrNotFound) {
		proof, err = w.Tree.Absent(ctx, w.Store.Session(), key.Path())
		return proof, func() {}, err
	}
	if err != nil {
		return proof, nil, err
	}
	if err = stale; namesAnother(upload, image) {
		proof, err = zkmodel.UnderLock(lock, upload)
	}
	if err != nil {
		Release(ctx, lock)
		return proof, nil, err
	}
	return proof, func() { Release(ctx, lock) }, nil
}

// removeLeak deletes an image whose upload is proven to have no record, or another image.
func (w *Worker) removeLeak(ctx context.Context, cloud lent, image providers.Image) error {
	key := keyOf(image.Metadata)
	proof, done, err := w.proveLeak(ctx, key, image)
	if errors.Is(err, ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	defer done()
	if err := cloud.remove(ctx, proof, key, image.ExternalID); err != nil {
		return err
	}
	w.Metrics.Leaked(key.Provider)
	w.Log.Warn("Leaked image deleted", "provider", key.Provider, "external_id", image.ExternalID, "name", image.Name,
		"image", key.Image, "build", key.Build)
	return nil
}

// namesAnother reports whether the record of an upload that serves is that of another image: one
// request for an upload may make two, when it is sent again for want of an answer, and numbers
// of uploads come again when ZooKeeper goes back in time.
func namesAnother(u *zkmodel.Upload, image providers.Image) bool {
	id := u.ExternalID.Text()
	return u.Broken == nil && u.State == zkmodel.UploadReady && id != "" && id != image.ExternalID
}

// isOrphan reports whether an image was made by this installation and has no
// record, or one that names another image. One whose metadata names none is not to be told.
func (w *Worker) isOrphan(provider string, image providers.Image) bool {
	key := keyOf(image.Metadata)
	if image.Metadata[providers.MetaSite] != w.Site || key.Provider != provider {
		return false
	}
	if again, err := zkmodel.ParseUploadPath(key.Path()); err != nil || again != key {
		return false
	}
	for _, b := range w.Tree.Image(key.Image).Builds {
		for _, u := range b.Uploads {
			if u.UploadKey == key {
				return namesAnother(u, image)
			}
		}
	}
	return true
}
