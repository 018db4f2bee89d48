package zkmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel/recipe"
)

// readers is how many reads of one listing are under way at once: enough to
// hide the way to the server, not enough to crowd out others.
const readers = 64

// Images reads all images with their builds and uploads, by name: one look at
// the tree. What is deleted while it reads is left out. A daemon follows a
// Mirror instead.
func (st *Store) Images(ctx context.Context) ([]*Image, error) {
	names, err := st.children(ctx, ImagesRoot)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	images, err := gather(ctx, names, st.readImage)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	type buildOf struct {
		*Image
		id string
	}
	var all []buildOf
	for _, image := range images {
		for _, b := range image.Builds {
			all = append(all, buildOf{image, b.ID})
		}
		image.Builds = nil
	}
	builds, err := gather(ctx, all, func(ctx context.Context, b buildOf) (*BuildTree, error) {
		return st.readBuildTree(ctx, b.Name, b.id)
	})
	if err != nil {
		return nil, fmt.Errorf("list builds: %w", err)
	}
	byName := make(map[string]*Image, len(images))
	for _, image := range images {
		byName[image.Name] = image
	}
	for _, b := range builds {
		image := byName[b.Image]
		image.Builds = append(image.Builds, b)
	}
	for _, image := range images {
		image.sortTree()
	}
	return images, nil
}

// Image reads one image with its builds and uploads, or fails with ErrNotFound.
func (st *Store) Image(ctx context.Context, name string) (*Image, error) {
	if _, ok, err := st.session.Exists(ctx, ImagePath(name)); err != nil || !ok {
		return nil, fmt.Errorf("read image %s: %w", name, cmp.Or(err, ErrNotFound))
	}
	image, err := st.readImage(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", name, err)
	}
	image.Builds, err = gather(ctx, image.Builds, func(ctx context.Context, b *BuildTree) (*BuildTree, error) {
		return st.readBuildTree(ctx, name, b.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", name, err)
	}
	image.sortTree()
	return image, nil
}

// Nodes reads all nodes, by id.
func (st *Store) Nodes(ctx context.Context) ([]*Node, error) {
	ids, err := st.children(ctx, NodesRoot)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes, err := gather(ctx, ids, func(ctx context.Context, id string) (*Node, error) {
		n, err := st.Node(ctx, id)
		if err != nil {
			return nil, err
		}
		n.Locked, err = recipe.Locked(ctx, st.session, LockPath(n.Path()))
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

// Requests reads all node requests, in the order in which they are served.
func (st *Store) Requests(ctx context.Context) ([]*Request, error) {
	ids, err := st.children(ctx, RequestsRoot)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	requests, err := gather(ctx, ids, st.Request)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	slices.SortFunc(requests, CompareRequests)
	return requests, nil
}

// readImage reads an image's flags and the ids of its builds, which are left
// empty otherwise.
func (st *Store) readImage(ctx context.Context, name string) (*Image, error) {
	image := &Image{Name: name}
	below, err := st.children(ctx, ImagePath(name))
	if err != nil {
		return nil, err
	}
	image.Paused = slices.Contains(below, path.Base(PausePath(name)))
	if slices.Contains(below, path.Base(RequestBuildPath(name))) {
		stat, ok, err := st.session.Exists(ctx, RequestBuildPath(name))
		if err != nil {
			return nil, err
		}
		if ok {
			image.BuildRequested = &stat
		}
	}
	if image.BuildsLocked, err = recipe.Locked(ctx, st.session, BuildsLockPath(name)); err != nil {
		return nil, err
	}
	ids, err := st.children(ctx, BuildsPath(name))
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		image.Builds = append(image.Builds, &BuildTree{Build: &Build{Image: name, ID: id}})
	}
	return image, nil
}

// readBuildTree reads a build and its uploads.
func (st *Store) readBuildTree(ctx context.Context, image, id string) (*BuildTree, error) {
	b, err := st.Build(ctx, image, id)
	if err != nil {
		return nil, err
	}
	tree := &BuildTree{Build: b}
	providers, err := st.children(ctx, ProvidersPath(image, id))
	if err != nil {
		return nil, err
	}
	for _, provider := range providers {
		ids, err := st.children(ctx, UploadsPath(image, id, provider))
		if err != nil {
			return nil, err
		}
		for _, upload := range ids {
			u, err := st.Upload(ctx, UploadKey{image, id, provider, upload})
			switch {
			case err == nil:
				tree.Uploads = append(tree.Uploads, u)
			case !errors.Is(err, ErrNotFound):
				return nil, err
			}
		}
	}
	return tree, nil
}

// children lists the records below a path, by name; none when there is no such
// path. The lock among them is no record.
func (st *Store) children(ctx context.Context, parent string) ([]string, error) {
	names, err := st.session.Children(ctx, parent)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == lockName })
	slices.Sort(names)
	return names, nil
}

// gather reads an R for every item, many at once, in the order of the items.
// What is not found is left out.
func gather[T, R any](ctx context.Context, items []T, read func(context.Context, T) (*R, error)) ([]*R, error) {
	found := make([]*R, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, item := range items {
		group.Go(func() (err error) {
			found[i], err = read(ctx, item)
			if errors.Is(err, ErrNotFound) {
				found[i], err = nil, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r *R) bool { return r == nil }), nil
}
