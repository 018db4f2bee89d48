package builder

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/builder/plan"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// deleteUpload removes an upload from its cloud, and then its record, under the
// record's lock.
func (l *loop) deleteUpload(ctx context.Context, a plan.Action) error {
	cloud, done, err := l.clouds.use(l.config.Load(), a.Provider)
	if err != nil {
		return err
	}
	defer done()
	lock, upload, err := l.store.LockUpload(ctx, uploadOf(a))
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	if _, _, err := l.confirm(ctx, a, func(*plan.Doing) {}); err != nil {
		return err
	}
	if upload.State != zkmodel.UploadDeleting {
		// From here on no launcher takes the image for a new node.
		upload.SetState(zkmodel.UploadDeleting, zkmodel.EpochOf(l.deps.Now()))
		if err := l.store.SaveUpload(ctx, lock, upload); err != nil {
			return err
		}
		l.deps.Step(StepDeleteMarked)
	}
	if err := l.emptyCloud(ctx, cloud, upload); err != nil {
		return err
	}
	l.deps.Step(StepDeleteCloud)
	if err := lock.DeleteTree(ctx, upload.Path()); err != nil {
		return fmt.Errorf("delete upload %s: %w", upload.Path(), err)
	}
	l.log.Info("Upload deleted", "image", a.Image, "build", a.Build, "provider", a.Provider, "upload", a.Upload, "why", a.Why)
	l.deps.Step(StepDeleteUpload)
	return nil
}

// reclaimUpload removes what is left of an upload whose uploader is gone: what
// the cloud has of it is found by its metadata. The lock of the build's uploads
// proves that nobody is at it.
func (l *loop) reclaimUpload(ctx context.Context, a plan.Action) error {
	cloud, done, err := l.clouds.use(l.config.Load(), a.Provider)
	if err != nil {
		return err
	}
	defer done()
	lock, err := l.store.LockUploads(ctx, a.Image, a.Build, a.Provider)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	upload, err := l.store.Upload(ctx, uploadOf(a))
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if upload.State != zkmodel.UploadUploading {
		return errStale
	}
	if err := l.emptyCloud(ctx, cloud, upload); err != nil {
		return err
	}
	l.deps.Step(StepReclaimCloud)
	if err := lock.DeleteTree(ctx, upload.Path()); err != nil {
		return fmt.Errorf("reclaim upload %s: %w", upload.Path(), err)
	}
	l.log.Warn("Upload of a builder that is gone was removed",
		"image", a.Image, "build", a.Build, "provider", a.Provider, "upload", a.Upload)
	l.deps.Step(StepReclaimUpload)
	return nil
}

// emptyCloud removes from a cloud all that belongs to an upload: the image that
// the record names, or what carries the record's name.
func (l *loop) emptyCloud(ctx context.Context, cloud providers.Provider, upload *zkmodel.Upload) error {
	if id := upload.ExternalID.Text(); id != "" {
		return cloud.DeleteImage(ctx, id)
	}
	images, err := cloud.ListImages(ctx)
	if errors.Is(err, providers.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, image := range images {
		if isImageOf(image.Metadata, upload.UploadKey, l.site) {
			err = errors.Join(err, cloud.DeleteImage(ctx, image.ExternalID))
		}
	}
	return err
}

// isImageOf tells whether metadata is that of an upload of ours. Nodepool's
// lacks the image's name, without which numbers name nothing.
func isImageOf(meta map[string]string, key zkmodel.UploadKey, site string) bool {
	return meta[providers.MetaSite] == site && meta[providers.MetaImage] == key.Image && meta[providers.MetaBuild] == key.Build &&
		meta[providers.MetaUpload] == key.ID && meta[providers.MetaProvider] == key.Provider
}
