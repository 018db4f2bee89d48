package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// doubtEvery is how often we look whether there are uploads that are doubted.
const doubtEvery = 30 * time.Second

// doubted are the ready uploads of images to a provider that a launcher could not boot
// from.
func doubted(images []*zkmodel.Image, provider string) []*zkmodel.Upload {
	var list []*zkmodel.Upload
	for _, image := range images {
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if u.Provider == provider && u.Broken == nil && u.State == zkmodel.UploadReady && u.Suspect != "" &&
					image.Verdict(b.Build, provider) == nil { // that one is not doubted
					list = append(list, u)
				}
			}
		}
	}
	return list
}

// forgetLost removes the records of doubted uploads that their cloud does not
// list: somebody deleted the image there. It takes both, a launcher that could
// not boot from it and a list without it; the image is then sent again.
func (w *Worker) forgetLost(ctx context.Context, provider string, listed []providers.Image) error {
	there := make(map[string]bool, len(listed))
	for _, image := range listed {
		there[image.ExternalID] = true
	}
	var failed error
	for _, u := range doubted(w.Tree.Images(), provider) {
		if !there[u.ExternalID.Text()] {
			failed = errors.Join(failed, w.forget(ctx, u))
		}
	}
	return failed
}

// forget removes one record, unless it has changed.
func (w *Worker) forget(ctx context.Context, u *zkmodel.Upload) error {
	lock, now, err := w.Store.LockUpload(ctx, u.UploadKey)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	defer w.Deciding(ctx)()
	if now.State != zkmodel.UploadReady || now.Suspect == "" || now.ExternalID.Text() != u.ExternalID.Text() {
		return nil
	}
	if err := w.Store.DropUpload(ctx, lock, now, "the cloud has lost it"); err != nil {
		return fmt.Errorf("forget upload %s: %w", u.Path(), err)
	}
	w.Log.Warn("The cloud has lost an image; its record goes, and it is sent again",
		"image", u.Image, "build", u.Build, "provider", u.Provider, "external_id", u.ExternalID.Text())
	return nil
}
