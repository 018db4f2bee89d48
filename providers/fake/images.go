package fake

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

// steps is how often an upload tells its progress.
const steps = 8

// UploadImage implements providers.Images. As in a real cloud, the image exists
// from the first moment on, so a killed builder leaves it to be found.
func (p *Provider) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	id, err := p.upload(ctx, up)
	if err != nil {
		return "", fmt.Errorf("upload image %s: %w", up.Name, err)
	}
	return id, nil
}

func (p *Provider) upload(ctx context.Context, up providers.ImageUpload) (string, error) {
	uploadID := up.Metadata[providers.MetaUpload]
	if err := p.before(ctx, OpUpload, uploadID); err != nil {
		return "", err
	}
	if err := failing(up.Metadata); err != nil {
		return "", err
	}
	img := image{Image: providers.Image{
		ExternalID: newID(), Name: up.Name, Format: up.Format, Size: up.Size, Metadata: maps.Clone(up.Metadata),
	}}
	if err := p.put(img); err != nil {
		return "", err
	}
	err := p.receive(ctx, up)
	if err == nil {
		err = p.activate(img)
	}
	if err != nil {
		if undo := p.drop(img.ExternalID); undo != nil {
			p.log.Warn("Image of a failed upload is left behind", "image", img.ExternalID, "error", undo)
		}
		return "", err
	}
	return img.ExternalID, p.after(ctx, OpUpload, uploadID)
}

// receive checks the file as a cloud would, then pretends that it takes its time.
func (p *Provider) receive(ctx context.Context, up providers.ImageUpload) error {
	progress := up.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	up.Progress = nil // of reading, which is not sending
	file, err := imagefile.Open(ctx, up)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	if !up.Verified {
		if _, err := io.Copy(io.Discard, file); err != nil {
			return err
		}
	}
	for i := range int64(steps) {
		if err := pause(ctx, p.fake.UploadDelay/steps); err != nil {
			return err
		}
		progress(up.Size * (i + 1) / steps)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *Provider) put(img image) error {
	return p.ledger.change(func(*state) (*event, error) { return &event{Image: &img}, nil })
}

// activate has nodes boot from an image whose file has come, unless it was deleted meanwhile.
func (p *Provider) activate(img image) error {
	img.Active = true
	return p.ledger.change(func(s *state) (*event, error) {
		if _, ok := s.images[img.ExternalID]; !ok {
			return nil, fmt.Errorf("image %s was deleted while its file was sent: %w", img.ExternalID, providers.ErrNotFound)
		}
		return &event{Image: &img}, nil
	})
}

func (p *Provider) drop(id string) error {
	return p.ledger.change(func(s *state) (*event, error) {
		if _, ok := s.images[id]; !ok {
			return nil, nil
		}
		return &event{ImageGone: id}, nil
	})
}

// DeleteImage implements providers.Images.
func (p *Provider) DeleteImage(ctx context.Context, externalID string) error {
	if err := p.before(ctx, OpDeleteImage, externalID); err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, err)
	}
	if err := pause(ctx, p.fake.DeleteDelay); err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, err)
	}
	if err := p.drop(externalID); err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, err)
	}
	return p.after(ctx, OpDeleteImage, externalID)
}

// ListImages implements providers.Images, sorted by external id.
func (p *Provider) ListImages(ctx context.Context) ([]providers.Image, error) {
	if err := p.before(ctx, OpList, ""); err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var list []providers.Image
	err := p.ledger.read(func(s *state) {
		for _, img := range s.images {
			if img.Metadata[providers.MetaProvider] == p.cfg.Name {
				img.Metadata = maps.Clone(img.Metadata)
				list = append(list, img.Image)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	slices.SortFunc(list, func(a, b providers.Image) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list, nil
}

// failing is what SHOULD_FAIL asks for.
func failing(properties ...map[string]string) error {
	for _, m := range properties {
		if strings.EqualFold(m[shouldFail], "true") {
			return fmt.Errorf("%w: property %s is true", providers.ErrTransient, shouldFail)
		}
	}
	return nil
}

// newID makes an id as clouds do: 32 hex digits.
func newID() string { return kit.RandomHex(16) }

// now is the clock of records that other processes read.
func now() time.Time { return time.Now().Round(0) }
