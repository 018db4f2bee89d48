package actions

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs/planted"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// deleteUpload removes an upload from its cloud, and then its record, under the
// record's lock.
func (w *Worker) deleteUpload(ctx context.Context, a plan.Action) error {
	cloud, done, err := w.use(w.Config(), a.Provider)
	if err != nil {
		return err
	}
	defer done()
	lock, upload, err := w.Store.LockUpload(ctx, uploadOf(a))
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	if upload.Unknown() && !planted.Bug("garbled") {
		return fmt.Errorf("delete upload %s: %w", upload.Path(), upload.Broken)
	}
	_, in, err := w.confirm(ctx, a, func(*plan.InFlight) {})
	if err != nil {
		return err
	}
	if upload.State == zkmodel.UploadDeleting {
		if err := w.notSent(ctx, in.Image, upload); err != nil {
			return err
		}
	}
	if upload.Leftover() {
		return w.dropLeftover(ctx, cloud, lock, upload)
	}
	if upload.State != zkmodel.UploadDeleting {
		// From here on no launcher takes the image for a new node.
		if err := zkmodel.Move(upload, zkmodel.UploadDeleting, zkmodel.ByUs, zkmodel.EpochOf(w.Now())); err != nil {
			return err
		}
		if err := w.Store.SaveUpload(ctx, lock, upload); err != nil {
			return err
		}
		w.Step(step.DeleteMarked)
	}
	if err := w.emptyCloud(ctx, cloud, lock, upload); err != nil {
		return errors.Join(err, w.noteFailure(ctx, lock, upload, err))
	}
	w.Step(step.DeleteCloud)
	if err := w.Store.DropUpload(ctx, lock, upload, a.Why); err != nil {
		return fmt.Errorf("delete upload %s: %w", upload.Path(), err)
	}
	w.Log.Info("Upload deleted", "image", a.Image, "build", a.Build, "provider", a.Provider, "upload", a.Upload, "why", a.Why)
	w.Step(step.DeleteUpload)
	return nil
}

// noteFailure records why the image of an upload cannot be deleted, unless the record says so.
func (w *Worker) noteFailure(ctx context.Context, lock *recipe.Held, upload *zkmodel.Upload, failed error) error {
	if why := Reason(failed); ctx.Err() == nil && zkmodel.Alike(upload.DeleteError) != zkmodel.Alike(why) {
		upload.DeleteError = zkmodel.BriefTrouble(why)
		return w.Store.SaveUpload(ctx, lock, upload)
	}
	return nil
}

// notSent fails with recipe.ErrLocked while a builder may still send an upload that is marked for
// deletion.
func (w *Worker) notSent(ctx context.Context, i *zkmodel.Image, u *zkmodel.Upload) error {
	if b := i.Build(u.Build); b == nil || !b.Newest(u) {
		return nil
	}
	sent, err := recipe.Locked(ctx, w.Store.Session(), zkmodel.UploadsLockPath(u.Image, u.Build, u.Provider))
	if err == nil && sent {
		err = fmt.Errorf("delete upload %s: a builder is still sending it: %w", u.Path(), recipe.ErrLocked)
	}
	return err
}

// dropLeftover removes the record of an upload that never held anything, if the cloud
// has no image of it.
func (w *Worker) dropLeftover(ctx context.Context, cloud lent, lock *recipe.Held, upload *zkmodel.Upload) error {
	images, err := cloud.ListImages(ctx)
	if err != nil && !errors.Is(err, providers.ErrNotSupported) {
		return err
	}
	for _, image := range images {
		if isImageOf(image.Metadata, upload.UploadKey, w.Site) {
			return fmt.Errorf("the record of upload %s is empty, and image %s is of it: %w", upload.Path(), image.ExternalID, ErrStale)
		}
	}
	if err := w.Store.DropUpload(ctx, lock, upload, "it never held anything"); err != nil {
		return fmt.Errorf("delete upload %s: %w", upload.Path(), err)
	}
	return nil
}

// reclaimUpload removes what is left of an upload whose uploader is gone: what
// the cloud has of it is found by its metadata. The lock of the build's uploads
// proves that nobody is at it.
func (w *Worker) reclaimUpload(ctx context.Context, a plan.Action) error {
	cloud, done, err := w.use(w.Config(), a.Provider)
	if err != nil {
		return err
	}
	defer done()
	lock, err := w.Store.LockUploads(ctx, a.Image, a.Build, a.Provider)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	upload, err := w.Store.Upload(ctx, uploadOf(a))
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if upload.State != zkmodel.UploadUploading {
		return ErrStale
	}
	if err := w.emptyCloud(ctx, cloud, lock, upload); err != nil {
		return err
	}
	w.Step(step.ReclaimCloud)
	if err := w.Store.DropUpload(ctx, lock, upload, "its builder is gone"); err != nil {
		return fmt.Errorf("reclaim upload %s: %w", upload.Path(), err)
	}
	w.Log.Warn("Upload of a builder that is gone was removed",
		"image", a.Image, "build", a.Build, "provider", a.Provider, "upload", a.Upload)
	w.Step(step.ReclaimUpload)
	return nil
}
