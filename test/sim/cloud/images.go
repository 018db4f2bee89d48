package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

// parts is how often an upload tells its progress.
const parts = 4

// UploadImage implements providers.Images. The image is there from the first moment on, as in
// a real cloud: so it stays when the agent crashes, and when the answer is lost with the wish
// to undo it.
func (h *handle) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	id, err := h.upload(ctx, up)
	if err != nil {
		return "", fmt.Errorf("upload image %s: %w", up.Name, err)
	}
	return id, nil
}

func (h *handle) upload(ctx context.Context, up providers.ImageUpload) (string, error) {
	c, err := h.begin(ctx, OpUpload)
	if err != nil {
		return "", err
	}
	var made []*image
	err = c.send(ctx, func(*call) error {
		made = append(made, c.newImage(up))
		if c.fault == Duplicate {
			made = append(made, c.newImage(up))
		}
		return nil
	})
	if err == nil {
		err = c.receive(ctx, up)
	}
	if err == nil {
		err = c.now(func(*call) error { return c.complete(made) })
	}
	if err == nil {
		err = c.answer(ctx)
	}
	if err == nil {
		return made[0].ExternalID, nil
	}
	if c.fault != Lost && c.agent.pass() == nil {
		_ = c.now(func(*call) error {
			for _, i := range made {
				c.cloud.dropImage(c.agent.name, c.place, i.ExternalID, 0, c.fault)
			}
			return nil
		})
	}
	return "", err
}

// newImage is one whose bytes are on their way.
func (c *call) newImage(up providers.ImageUpload) *image {
	i := &image{Image: providers.Image{
		ExternalID: c.cloud.newID(c.place, "image"), Name: up.Name, Format: up.Format, Size: up.Size, Metadata: maps.Clone(up.Metadata),
	}}
	i.from = time.Now().Add(c.cloud.lag(c.fault == Stale, c.rng))
	c.cloud.putImage(c.agent.name, c.place, i, c.fault)
	return i
}

// complete has images bootable whose bytes have arrived.
func (c *call) complete(made []*image) error {
	for _, i := range made {
		if !i.there() {
			return fmt.Errorf("%w: the image has gone", providers.ErrTransient)
		}
		i.active = true
		c.cloud.tell(c.agent.name, c.place, OpReady, i.ExternalID, i.Metadata, c.fault)
	}
	return nil
}

// receive reads the file, and takes its time.
func (c *call) receive(ctx context.Context, up providers.ImageUpload) error {
	progress := up.Progress
	up.Progress = nil // of reading, which is not sending
	if !up.Verified {
		if err := read(ctx, up); err != nil {
			return err
		}
	}
	for part := range int64(parts) {
		if err := c.wait(ctx, c.draw(50)); err != nil {
			return err
		}
		if err := c.agent.pass(); err != nil {
			return err
		}
		if part == 0 && up.Verified { // what is sent is what lies there by then
			if err := read(ctx, up); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(up.Size * (part + 1) / parts)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func read(ctx context.Context, up providers.ImageUpload) error {
	file, err := imagefile.Open(ctx, up)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, file)
	return errors.Join(err, file.Close())
}

// putImage and dropImage are called with the mutex held.
func (c *Cloud) putImage(agent string, p *place, i *image, by Fault) {
	p.images[i.ExternalID] = i
	c.tell(agent, p, OpUpload, i.ExternalID, i.Metadata, by)
}

func (c *Cloud) dropImage(agent string, p *place, id string, lag time.Duration, by Fault) {
	i, ok := p.images[id]
	if !ok || !i.there() {
		return
	}
	if i.until = time.Now().Add(lag); lag == 0 {
		delete(p.images, id)
	}
	c.tell(agent, p, OpDeleteImage, id, i.Metadata, by)
}

// DeleteImage implements providers.Images.
func (h *handle) DeleteImage(ctx context.Context, externalID string) error {
	err := h.ask(ctx, OpDeleteImage, func(c *call) error {
		h.cloud.dropImage(h.agent.name, h.place, externalID, h.cloud.lag(c.fault == Stale, c.rng), c.fault)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete image %s: %w", externalID, err)
	}
	return nil
}

// ListImages implements providers.Images, sorted by external id.
func (h *handle) ListImages(ctx context.Context) ([]providers.Image, error) {
	var list []providers.Image
	err := h.ask(ctx, OpListImages, func(*call) error {
		now := time.Now()
		for id, i := range h.place.images {
			switch {
			case !i.there() && !i.at(now):
				delete(h.place.images, id)
			case i.at(now) && i.Metadata[providers.MetaProvider] == h.section.Name:
				list = append(list, i.clone())
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	slices.SortFunc(list, func(a, b providers.Image) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list, nil
}
