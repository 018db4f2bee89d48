// Package bootable says which upload nodes boot from. It has no side effects.
package bootable

import (
	"iter"
	"slices"

	"poolkeeper/zkmodel"
)

// Newest is the upload that nodes boot from: of the image's builds, the one
// that was created last and has a ready upload in the provider; of its uploads
// there, the last. Nil when there is none.
//
// Creation order is that of the transactions that made the records: ids that
// Nodepool made are random. A build or upload that is being deleted, or has
// failed, never counts.
func Newest(images []*zkmodel.Image, image, provider string) *zkmodel.Upload {
	for u := range Ready(images, image, provider) {
		return u
	}
	return nil
}

// Ready goes through the uploads of an image that nodes of a provider can boot
// from, the newest first.
func Ready(images []*zkmodel.Image, image, provider string) iter.Seq[*zkmodel.Upload] {
	return func(yield func(*zkmodel.Upload) bool) {
		i := slices.IndexFunc(images, func(i *zkmodel.Image) bool { return i.Name == image })
		if i < 0 {
			return
		}
		for _, b := range slices.Backward(images[i].Builds) {
			if b.Broken != nil || b.State != zkmodel.BuildReady {
				continue
			}
			for _, u := range slices.Backward(b.Uploads) {
				if u.Provider == provider && u.Broken == nil && u.State == zkmodel.UploadReady && !u.ExternalID.IsNull() && !yield(u) {
					return
				}
			}
		}
	}
}

// Trusted is the newest upload that nobody has reason to doubt; where all are
// doubted, the newest.
func Trusted(images []*zkmodel.Image, image, provider string, doubted func(*zkmodel.Upload) bool) *zkmodel.Upload {
	for u := range Ready(images, image, provider) {
		if !doubted(u) {
			return u
		}
	}
	return Newest(images, image, provider)
}
