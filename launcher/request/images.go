package request

import (
	"context"
	"fmt"

	"poolkeeper/configs/planted"
	"poolkeeper/launcher/bootable"
	"poolkeeper/launcher/pool"
	"poolkeeper/zkmodel"
)

// imagesCame reports whether nodes of a pool can boot from an image for each label of a request, although
// this was not so a moment ago. All is seen that was ready before the request was made, however far
// the view is behind: its requestor may have waited for it.
func (s *Server) imagesCame(ctx context.Context, r *zkmodel.Request, p *pool.Pool) (bool, error) {
	if planted.Bug("image") {
		return false, nil
	}
	if err := s.Tree.WaitFor(ctx, r.Stat.Czxid); err != nil {
		return false, fmt.Errorf("see which images were ready before request %s: %w", r.ID, err)
	}
	for _, label := range r.NodeTypes {
		if !s.boots(p, label) {
			return false, nil
		}
	}
	return true, nil
}

// boots reports whether nodes of a label have an image to boot from, as far as the view tells.
func (s *Server) boots(p *pool.Pool, label string) bool {
	image, err := p.Image(s.Config, label)
	if err != nil { // whatever is ready
		return false
	}
	name := image.DiskImage
	return name == "" || bootable.Newest([]*zkmodel.Image{s.Tree.Image(name)}, name, p.Provider.Name) != nil
}
