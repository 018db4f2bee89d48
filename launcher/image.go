package launcher

import (
	"slices"

	"poolkeeper/zkmodel"
)

// newest is the upload that nodes boot from: of the image's builds, the one
// that was created last and has a ready upload in the provider; of its uploads
// there, the last. Nil when there is none.
//
// Creation order is that of the transactions that made the records: ids that
// Nodepool made are random. A build or upload that is being deleted, or has
// failed, never counts.
func newest(images []*zkmodel.Image, image, provider string) *zkmodel.Upload {
	i := slices.IndexFunc(images, func(i *zkmodel.Image) bool { return i.Name == image })
	if i < 0 {
		return nil
	}
	for _, b := range slices.Backward(images[i].Builds) {
		if b.Broken != nil || b.State != zkmodel.BuildReady {
			continue
		}
		for _, u := range slices.Backward(b.Uploads) {
			if u.Provider == provider && u.Broken == nil && u.State == zkmodel.UploadReady && !u.ExternalID.IsNull() {
				return u
			}
		}
	}
	return nil
}
