package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/providers"
)

// imageName is the file in an image's entry.
const imageName = "image"

// imageRecord describes a stored image.
type imageRecord struct {
	Name     string            `json:"name"`
	Format   string            `json:"format"`
	Size     int64             `json:"size"` // bytes
	MD5      string            `json:"md5,omitempty"`
	SHA256   string            `json:"sha256,omitempty"`
	Created  time.Time         `json:"created"`
	Metadata map[string]string `json:"metadata"`
}

// UploadImage implements providers.Images: it copies the file. A disk that is
// full is providers.ErrQuota.
func (p *Provider) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	id, err := p.upload(ctx, up)
	if err != nil {
		return "", fmt.Errorf("upload image %s: %w", up.Name, diskError(err))
	}
	return id, nil
}

func (p *Provider) upload(ctx context.Context, up providers.ImageUpload) (string, error) {
	if err := checkFormat(up); err != nil {
		return "", err
	}
	st, err := p.images.stage(ctx)
	if err != nil {
		return "", err
	}
	if err := fill(ctx, st, up); err != nil {
		if undo := st.abort(); undo != nil {
			p.log.Warn("Half an image is left until the next start", "dir", st.dir, "error", undo)
		}
		return "", err
	}
	id := imageID(up)
	return id, st.commit(id)
}

// fill makes the files of an image.
func fill(ctx context.Context, st *stage, up providers.ImageUpload) error {
	if err := copyImage(ctx, filepath.Join(st.dir, imageName), up); err != nil {
		return err
	}
	err := writeRecord(filepath.Join(st.dir, recordName), imageRecord{
		Name: up.Name, Format: up.Format, Size: up.Size, MD5: up.MD5, SHA256: up.SHA256,
		Created: time.Now().UTC(), Metadata: maps.Clone(up.Metadata),
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// imageID names an image after its contents and its upload, for people who look
// into the folder. The rest makes it unique.
func imageID(up providers.ImageUpload) string {
	id := "image"
	if len(up.SHA256) >= 12 && safe(up.SHA256[:12]) {
		id = up.SHA256[:12]
	}
	if upload := up.Metadata[providers.MetaUpload]; len(upload) <= maxID/2 && safe(upload) {
		id += "-" + upload
	}
	return id + "-" + kit.RandomHex(4)
}

// DeleteImage implements providers.Images. Guests that run from the image keep
// it: each has a link of its own to the file, and the last one frees the space.
func (p *Provider) DeleteImage(ctx context.Context, externalID string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, context.Cause(ctx))
	}
	if !safe(externalID) {
		return nil
	}
	if err := p.images.remove(externalID); err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, err)
	}
	return nil
}

// ListImages implements providers.Images.
func (p *Provider) ListImages(ctx context.Context) ([]providers.Image, error) {
	ids, err := p.images.ids()
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var list []providers.Image
	for _, id := range ids {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("list images: %w", context.Cause(ctx))
		}
		var r imageRecord
		err := readRecord(p.images.path(id, recordName), &r)
		if errors.Is(err, providers.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		if r.Metadata[providers.MetaProvider] == p.cfg.Name {
			list = append(list, providers.Image{
				ExternalID: id, Name: r.Name, Format: r.Format, Size: r.Size, Metadata: r.Metadata,
			})
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list images: %w", context.Cause(ctx))
	}
	return list, nil
}

// link gives a guest the image under a name of its own, so that the image may
// be deleted while the guest runs.
//
// Errors: providers.ErrNotFound.
func (p *Provider) linkImage(id, path string) (format string, err error) {
	if !safe(id) {
		return "", fmt.Errorf("image %q: %w", id, providers.ErrNotFound)
	}
	var r imageRecord
	if err := readRecord(p.images.path(id, recordName), &r); err != nil {
		return "", fmt.Errorf("image %s: %w", id, err)
	}
	err = os.Link(p.images.path(id, imageName), path)
	if errors.Is(err, os.ErrNotExist) {
		err = providers.ErrNotFound // deleted since
	}
	if err != nil {
		return "", fmt.Errorf("image %s: %w", id, err)
	}
	return r.Format, nil
}
