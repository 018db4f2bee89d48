package providers

import (
	"context"
	"fmt"
)

// NoImages is the Images of a provider that stores none.
type NoImages struct {
	Driver, Provider string // named in errors
}

var _ Images = NoImages{}

// UploadImage implements Images: there are none.
func (n NoImages) UploadImage(context.Context, ImageUpload) (string, error) {
	return "", fmt.Errorf("upload image in %s provider %s: %w", n.Driver, n.Provider, ErrNotSupported)
}

// DeleteImage implements Images: there are none, so it is gone.
func (n NoImages) DeleteImage(context.Context, string) error { return nil }

// ListImages implements Images.
func (n NoImages) ListImages(context.Context) ([]Image, error) { return nil, nil }
