package openstack

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"poolkeeper/providers"
)

// ownerPrefix begins the properties in which OpenStack's SDK notes the sums of
// what it uploads. Other tools recognise by them what is there already.
const ownerPrefix = "owner_specified.openstack."

// record describes an image to Glance. Some keys of the metadata are not
// properties but fields of their own.
//
// Errors: providers.ErrInvalid for a field that is not what it should be.
func record(id string, up providers.ImageUpload) (images.CreateOpts, error) {
	private := images.ImageVisibilityPrivate
	opts := images.CreateOpts{
		ID: id, Name: up.Name, DiskFormat: up.Format, ContainerFormat: "bare", Visibility: &private,
		Properties: maps.Clone(up.Metadata),
	}
	if opts.Properties == nil {
		opts.Properties = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(up.Metadata)) {
		if ok, err := field(&opts, strings.ReplaceAll(key, "-", "_"), up.Metadata[key]); err != nil {
			return opts, fmt.Errorf("%w: image metadata %s: %w", providers.ErrInvalid, key, err)
		} else if ok {
			delete(opts.Properties, key)
		}
	}
	if up.MD5 != "" {
		opts.Properties[ownerPrefix+"md5"] = up.MD5
	}
	if up.SHA256 != "" {
		opts.Properties[ownerPrefix+"sha256"] = up.SHA256
	}
	opts.Properties[ownerPrefix+"object"] = "images/" + up.Name
	return opts, nil
}

// field sets a field of Glance's own. It reports whether key is one.
func field(opts *images.CreateOpts, key, value string) (bool, error) {
	var err error
	switch key {
	case "visibility":
		visibility := images.ImageVisibility(value)
		opts.Visibility = &visibility
	case "is_public":
		var public bool
		if public, err = strconv.ParseBool(value); public {
			visibility := images.ImageVisibilityPublic
			opts.Visibility = &visibility
		}
	case "protected", "is_protected":
		opts.Protected, err = parseFlag(value)
	case "os_hidden", "is_hidden":
		opts.Hidden, err = parseFlag(value)
	case "min_disk":
		opts.MinDisk, err = strconv.Atoi(value)
	case "min_ram":
		opts.MinRAM, err = strconv.Atoi(value)
	case "tags":
		opts.Tags = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	case "container_format":
		opts.ContainerFormat = value
	case "disk_format": // the upload's format counts
	default:
		return false, nil
	}
	return true, err
}

func parseFlag(value string) (*bool, error) {
	flag, err := strconv.ParseBool(value)
	return &flag, err
}

// DeleteImage implements providers.Images.
func (p *Provider) DeleteImage(ctx context.Context, externalID string) error {
	s, err := p.session(ctx)
	if err != nil || !isUUID(externalID) {
		return err
	}
	err = images.Delete(ctx, s.image, externalID).ExtractErr()
	if missing(err) {
		return nil
	}
	return p.failure(ctx, "delete image "+externalID, err)
}

// ListImages implements providers.Images.
func (p *Provider) ListImages(ctx context.Context) ([]providers.Image, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	all, err := pages[images.Image](ctx, images.List(s.image, ours(p.cfg.Name)), "images")
	if err != nil {
		return nil, p.failure(ctx, "list images", err)
	}
	var list []providers.Image
	for _, image := range all {
		// Glance ignores a filter that it does not understand.
		if image.Properties[providers.MetaProvider] != p.cfg.Name || leaving(image.Status) || snapshot(image) {
			continue
		}
		list = append(list, providers.Image{
			ExternalID: image.ID, Name: image.Name, Format: image.DiskFormat,
			Size: image.SizeBytes, Metadata: properties(image),
		})
	}
	return list, nil
}

func leaving(status images.ImageStatus) bool {
	return status == images.ImageStatusDeleted || status == images.ImageStatusPendingDelete
}

// snapshot tells an image that somebody took of a node. Nova copies the
// properties of what the node was booted from, ours among them, and yet the
// image is not ours to delete.
func snapshot(image images.Image) bool {
	return image.Properties["image_type"] == "snapshot" || image.Properties["base_image_ref"] != nil
}

// properties are those that are text; Glance's own may be anything.
func properties(image images.Image) map[string]string {
	texts := map[string]string{}
	for key, value := range image.Properties {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// ours asks for the images that carry a provider's name.
type ours string

// ToImageListQuery implements images.ListOptsBuilder.
func (name ours) ToImageListQuery() (string, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, providers.MetaProvider: {string(name)}}
	return "?" + query.Encode(), nil
}
