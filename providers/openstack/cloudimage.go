package openstack

import (
	"context"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"poolkeeper/providers"
)

// bootImage finds what a node boots from: the uploaded image, or the label's
// cloud image.
func (p *Provider) bootImage(ctx context.Context, o offer, uploaded string) (string, error) {
	switch {
	case o.label.CloudImage != "":
		return p.cloudImage(ctx, o)
	case uploaded == "":
		return "", o.invalid("diskimage", "no image was given for %q", o.label.DiskImage)
	case !isUUID(uploaded):
		return "", fmt.Errorf("%s: %w: image %q", o, providers.ErrNotFound, uploaded)
	}
	return uploaded, nil
}

// cloudImage is the id of an image that the cloud has already.
func (p *Provider) cloudImage(ctx context.Context, o offer) (string, error) {
	image, ok := p.cfg.CloudImage(o.label.CloudImage)
	if !ok {
		return "", o.invalid("cloud-image", "the provider's cloud-images has no %q", o.label.CloudImage)
	}
	if image.ImageID != "" {
		return image.ImageID, nil
	}
	return seek(ctx, &p.images, p.now, p.listCloudImages, func(known map[string]string) (string, error) {
		id, ok := known[image.ImageName]
		if !ok {
			return "", o.invalid("cloud-image", "the cloud has no active image called %q", image.ImageName)
		}
		return id, nil
	})
}

// listCloudImages finds the configured cloud images by name.
func (p *Provider) listCloudImages(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, image := range p.cfg.CloudImages {
		if image.ImageName == "" || found[image.ImageName] != "" {
			continue
		}
		id, err := p.imageNamed(ctx, image.ImageName)
		if err != nil {
			return nil, err
		}
		if id != "" {
			found[image.ImageName] = id
		}
	}
	return found, nil
}

// imageNamed is the id of the newest image of a name that can be booted, or "".
func (p *Provider) imageNamed(ctx context.Context, name string) (string, error) {
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	list := images.ListOpts{Name: name, Status: images.ImageStatusActive, Limit: pageSize}
	all, err := pages[images.Image](ctx, images.List(s.image, list), "images")
	if err != nil {
		return "", p.failure(ctx, "look for image "+name, err)
	}
	var id string
	var newest time.Time
	for _, image := range all {
		if id == "" || image.CreatedAt.After(newest) {
			id, newest = image.ID, image.CreatedAt
		}
	}
	return id, nil
}
