// Package bootable says which upload nodes boot from. It has no side effects.
package bootable

import (
	"iter"
	"slices"

	"poolkeeper/zkmodel"
)

// Newest is the upload that nodes boot from when nobody doubts one: the first of Ready. Nil
// when there is none.
func Newest(images []*zkmodel.Image, image, provider string) *zkmodel.Upload {
	for u := range Ready(images, image, provider) {
		return u
	}
	return nil
}

// Ready goes through the uploads of an image that nodes of a provider can boot
// from, as zkmodel.Image.Bootable orders them.
func Ready(images []*zkmodel.Image, image, provider string) iter.Seq[*zkmodel.Upload] {
	if i := find(images, image); i != nil {
		return i.Bootable(provider)
	}
	return func(func(*zkmodel.Upload) bool) {}
}

// Trusted is the upload of a pinned build, or the newest that nobody has reason to doubt;
// where all are doubted, the newest.
func Trusted(images []*zkmodel.Image, image, provider string, doubted func(*zkmodel.Upload) bool) *zkmodel.Upload {
	if i := find(images, image); i != nil {
		return i.Serving(provider, doubted)
	}
	return nil
}

// Unread says what of an image cannot be read, so that it may have more uploads than Ready gives; nil where all is.
func Unread(images []*zkmodel.Image, image string) error {
	if i := find(images, image); i != nil {
		return i.Unread
	}
	return nil
}

func find(images []*zkmodel.Image, name string) *zkmodel.Image {
	i := slices.IndexFunc(images, func(i *zkmodel.Image) bool { return i.Name == name })
	if i < 0 {
		return nil
	}
	return images[i]
}
