package openstack

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imageimport"

	"poolkeeper/providers"
)

// transfer brings an image's data into its record: by a plain upload, or as
// image-import-method says.
func (p *Provider) transfer(ctx context.Context, s *session, id string, up providers.ImageUpload) error {
	method := imageimport.ImportMethod(p.cfg.ImageImportMethod)
	if method == "" {
		return s.send(ctx, id, up, false)
	}
	if err := offers(ctx, s, method); err != nil {
		return err
	}
	opts := imageimport.CreateOpts{Name: method}
	if method == imageimport.WebDownloadMethod {
		var err error
		if opts.URI, err = webAddress(p.cfg.ImageImportURL, up.Path); err != nil {
			return err
		}
	} else if err := s.send(ctx, id, up, true); err != nil {
		return err
	}
	err := imageimport.Create(ctx, s.image, id, opts).ExtractErr()
	return failure(ctx, "import it by "+string(method), err)
}

// offers makes sure that a cloud can import images in a way, since its own
// answer to one that it cannot is hard to understand.
func offers(ctx context.Context, s *session, method imageimport.ImportMethod) error {
	info, err := imageimport.Get(ctx, s.image).Extract()
	if err != nil && !missing(err) {
		return failure(ctx, "ask how the cloud imports images", err)
	}
	var methods []string
	if info != nil {
		methods = info.ImportMethods.Value
	}
	if !slices.Contains(methods, string(method)) {
		return fmt.Errorf("%w: image-import-method %s: the cloud offers %s", providers.ErrInvalid, method, listed(methods))
	}
	return nil
}

// webAddress is where the cloud finds a file of images-dir.
func webAddress(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%w: image-import-url %q is no address", providers.ErrInvalid, base)
	}
	return strings.TrimSuffix(base, "/") + "/" + url.PathEscape(filepath.Base(path)), nil
}
