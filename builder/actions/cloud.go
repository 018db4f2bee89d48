package actions

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// imageStore is what a builder does with a provider. Deleting is not part of it: it
// takes a proof, see lent.remove.
type imageStore interface {
	UploadImage(ctx context.Context, image providers.ImageUpload) (string, error)
	ListImages(ctx context.Context) ([]providers.Image, error)
}

// lent is an opened provider in the hands of a user.
type lent struct {
	imageStore
	provider providers.Provider
}

// remove deletes an image of an upload. The proof is that of the upload's record: it
// is not there, or was read under its lock.
func (l lent) remove(ctx context.Context, proof zkmodel.Proof, key zkmodel.UploadKey, externalID string) error {
	if err := proof.Of(key.Path()); err != nil {
		return err
	}
	return l.provider.DeleteImage(ctx, externalID)
}

// storesImages reports whether it can have images at all: one of machines that exist
// already has none.
func (l lent) storesImages() bool {
	_, exist := l.provider.(providers.Slotter)
	return !exist
}

// use lends a provider until done is called.
func (w *Worker) use(cfg *configs.Config, name string) (l lent, done func(), err error) {
	p, done, err := w.Use(cfg, name)
	return lent{p, p}, done, err
}

// leftInClouds makes sure that no configured cloud has an image of a build whose record
// never held anything.
func (w *Worker) leftInClouds(ctx context.Context, image, build string) error {
	cfg := w.Config()
	for _, p := range cfg.Providers {
		cloud, done, err := w.use(cfg, p.Name)
		if err != nil {
			return err
		}
		images, err := cloud.ListImages(ctx)
		done()
		if err != nil && !errors.Is(err, providers.ErrNotSupported) {
			return fmt.Errorf("look for images of build %s-%s in %s: %w", image, build, p.Name, err)
		}
		for _, i := range images {
			if key := keyOf(i.Metadata); i.Metadata[providers.MetaSite] == w.Site && key.Image == image && key.Build == build {
				return fmt.Errorf("the record of build %s-%s is empty, and image %s in %s is of it: %w", image, build, i.ExternalID, p.Name, ErrStale)
			}
		}
	}
	return nil
}

// emptyCloud removes from a cloud all that belongs to an upload: the image that
// the record names, or what carries the record's name.
func (w *Worker) emptyCloud(ctx context.Context, cloud lent, lock *recipe.Held, upload *zkmodel.Upload) error {
	proof, err := zkmodel.UnderLock(lock, upload)
	if err != nil {
		return err
	}
	if id := upload.ExternalID.Text(); id != "" {
		return cloud.remove(ctx, proof, upload.UploadKey, id)
	}
	if upload.AskedID != "" { // a list need not show it yet
		err = cloud.remove(ctx, proof, upload.UploadKey, upload.AskedID)
	}
	images, failed := cloud.ListImages(ctx)
	if errors.Is(failed, providers.ErrNotSupported) {
		return err
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	for _, image := range images {
		if isImageOf(image.Metadata, upload.UploadKey, w.Site) {
			err = errors.Join(err, cloud.remove(ctx, proof, upload.UploadKey, image.ExternalID))
		}
	}
	return err
}

// isImageOf reports whether metadata is that of an upload of ours. Nodepool's
// lacks the image's name, without which numbers name nothing.
func isImageOf(meta map[string]string, key zkmodel.UploadKey, site string) bool {
	return meta[providers.MetaSite] == site && meta[providers.MetaImage] == key.Image && meta[providers.MetaBuild] == key.Build &&
		meta[providers.MetaUpload] == key.ID && meta[providers.MetaProvider] == key.Provider
}

// keyOf names the upload that an image in a cloud belongs to.
func keyOf(meta map[string]string) zkmodel.UploadKey {
	return zkmodel.UploadKey{
		Image: meta[providers.MetaImage], Build: meta[providers.MetaBuild],
		Provider: meta[providers.MetaProvider], ID: meta[providers.MetaUpload],
	}
}
