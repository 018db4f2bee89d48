package largesite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/site"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
)

// Tree is the site in memory, as a mirror shows it.
type Tree struct {
	Images     []*zkmodel.Image
	Nodes      []*zkmodel.Node
	Requests   []*zkmodel.Request
	Pauses     []*zkmodel.ProviderPause
	Beside     *overview.Beside
	components []*zkmodel.Component
}

// Components are those of a kind.
func (t *Tree) Components(kind string) (list []*zkmodel.Component) {
	for _, c := range t.components {
		if c.Kind == kind {
			list = append(list, c)
		}
	}
	return list
}

// Tree decodes all records.
func (s *Site) Tree() *Tree {
	t := &Tree{}
	images := map[string]*zkmodel.Image{}
	builds := map[string]*zkmodel.BuildTree{}
	for n, at := range slices.Sorted(maps.Keys(s.Records)) {
		data := []byte(s.Records[at])
		stat := recipe.Stat{Czxid: int64(n + 1), Mzxid: int64(n + 1), Ctime: s.Now.Add(-time.Minute), Mtime: s.Now.Add(-time.Minute)}
		switch parts := strings.Split(strings.TrimPrefix(at, "/"), "/"); {
		case strings.HasPrefix(at, zkmodel.ImagesRoot+"/") && len(parts) == 5: // nodepool images IMAGE builds BUILD
			image := images[parts[2]]
			if image == nil {
				image = &zkmodel.Image{Name: parts[2], BuildsLocked: slices.Contains(s.Building, parts[2])}
				images[image.Name], t.Images = image, append(t.Images, image)
			}
			b := &zkmodel.BuildTree{Build: zkmodel.DecodeBuild(image.Name, parts[4], data, stat)}
			b.Stat.Ctime = b.StateTime.Time().Add(-20 * time.Minute)
			builds[at], image.Builds = b, append(image.Builds, b)
		case strings.HasPrefix(at, zkmodel.ImagesRoot+"/"):
			key, err := zkmodel.ParseUploadPath(at)
			if b := builds[zkmodel.BuildPath(key.Image, key.Build)]; err == nil && b != nil {
				b.Uploads = append(b.Uploads, zkmodel.DecodeUpload(key, data, stat))
			}
		case strings.HasPrefix(at, zkmodel.NodesRoot+"/"):
			node := zkmodel.DecodeNode(path.Base(at), data, stat)
			node.Locked = node.State == zkmodel.NodeInUse || node.State == zkmodel.NodeBuilding
			t.Nodes = append(t.Nodes, node)
		case strings.HasPrefix(at, zkmodel.RequestsRoot+"/"):
			r := zkmodel.DecodeRequest(path.Base(at), data, stat)
			r.Stat.Ctime = r.StateTime.Time()
			t.Requests = append(t.Requests, r)
		case strings.HasPrefix(at, zkmodel.ComponentsRoot+"/"):
			t.components = append(t.components, zkmodel.DecodeComponent(path.Base(at), data))
		case strings.HasPrefix(at, zkmodel.PausesRoot+"/"):
			pause := &zkmodel.ProviderPause{}
			pause.Broken = json.Unmarshal(data, pause)
			pause.Provider = path.Base(at)
			t.Pauses = append(t.Pauses, pause)
		}
	}
	s.judge(t)
	t.Beside = s.beside()
	return t
}

// Store writes all records into a tree, and holds the locks of the images that are built
// until the session ends.
func (s *Site) Store(ctx context.Context, session *recipe.Session) error {
	for _, at := range slices.Sorted(maps.Keys(s.Records)) {
		if err := Put(ctx, session, at, s.Records[at]); err != nil {
			return err
		}
	}
	if err := s.storeCanary(ctx, session); err != nil {
		return err
	}
	for _, image := range s.Building {
		lock := zkmodel.BuildsLockPath(image)
		if err := session.EnsurePath(ctx, lock); err != nil {
			return fmt.Errorf("make lock of the large site: %w", err)
		}
		if _, err := session.Create(ctx, lock+"/0123456789abcdef0123456789abcdef__lock__", nil, recipe.Ephemeral|recipe.Sequential); err != nil {
			return fmt.Errorf("make lock of the large site: %w", err)
		}
	}
	return nil
}

// Put writes one record, which may be there.
func Put(ctx context.Context, session *recipe.Session, at, data string) error {
	if err := session.EnsurePath(ctx, path.Dir(at)); err != nil {
		return fmt.Errorf("write record of the large site: %w", err)
	}
	_, err := session.Create(ctx, at, []byte(data), recipe.Persistent)
	if errors.Is(err, recipe.ErrNodeExists) {
		_, err = session.Set(ctx, at, []byte(data), recipe.AnyVersion)
	}
	if err != nil {
		return fmt.Errorf("write record of the large site: %w", err)
	}
	return nil
}

// Web is the tree as web servers take it.
func (t *Tree) Web() site.Tree {
	return site.Tree{
		Images: func() []*zkmodel.Image { return t.Images }, Nodes: func() []*zkmodel.Node { return t.Nodes }, Requests: func() []*zkmodel.Request { return t.Requests },
		Components: t.Components, ProviderPauses: func() []*zkmodel.ProviderPause { return t.Pauses },
		Beside: func() *overview.Beside { return t.Beside },
	}
}
