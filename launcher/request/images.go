package request

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/configs/planted"
	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// imagesCame reports whether nodes of a pool can boot from an image for each label of a request, although
// this was not so a moment ago.
//
// Errors: recipe.ErrUnread where nobody can tell.
func (s *Server) imagesCame(ctx context.Context, r *zkmodel.Request, p *pool.Pool) (bool, error) {
	if planted.Bug("image") {
		return false, nil
	}
	for _, label := range r.NodeTypes {
		if u, needed, err := s.upload(ctx, r, p, label); err != nil || needed && u == nil {
			return false, err
		}
	}
	return true, nil
}

// otherImage reports whether a node of a request, whose launch found no image, or not the one that was chosen, can boot
// from another one by now.
func (s *Server) otherImage(ctx context.Context, h *run, n *launch.Run) (bool, error) {
	if !errors.Is(n.Err, pool.ErrNoImage) && (!errors.Is(n.Err, providers.ErrNotFound) || !n.Node.ExternalID.IsNull()) {
		return false, nil
	}
	u, _, err := s.upload(ctx, h.Request, h.Pool, n.Place.Label)
	return u != nil && u.Path() != n.Node.ImageID, err
}

// upload is the newest that nodes of a label boot from, nil where there is none, and whether they need one. All is seen
// that was ready before the request was made, however far the view is behind: its requestor may have waited for it.
//
// Errors: recipe.ErrUnread where nobody can tell.
func (s *Server) upload(ctx context.Context, r *zkmodel.Request, p *pool.Pool, label string) (u *zkmodel.Upload, needed bool, err error) {
	image, err := p.Image(s.Config, label)
	if err != nil {
		return nil, true, nil //nolint:nilerr // the configuration has none, whatever is ready
	}
	if image.DiskImage == "" {
		return nil, false, nil
	}
	if err = s.Tree.WaitForImages(ctx, r.Stat.Czxid); err == nil {
		seen := s.Tree.Image(image.DiskImage)
		if u = bootable.Newest([]*zkmodel.Image{seen}, seen.Name, p.Provider.Name); u == nil {
			err = seen.Unread
		}
	}
	if err != nil {
		return nil, true, fmt.Errorf("see which images were ready before request %s: %w", r.ID, err)
	}
	return u, true, nil
}
