package zkmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel/recipe"
)

// readers is how many reads of one listing are under way at once: enough to
// hide the way to the server, not enough to crowd out others.
const readers = 64

// Where the reads of several items go to the server together, so many items do, and so many
// such requests are under way at once.
const (
	together      = 30
	readersOfMany = 8
)

// Images reads all images with their builds and uploads, by name: one look at
// the tree. What is deleted while it reads is left out; what cannot be read hides
// nothing else, see Image.Unread. A daemon follows a Mirror instead.
func (st *Store) Images(ctx context.Context) ([]*Image, error) {
	names, err := st.children(ctx, ImagesRoot)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	images, err := gather(ctx, names, st.readImage)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	if err := st.readBuilds(ctx, images...); err != nil {
		return nil, fmt.Errorf("list builds: %w", err)
	}
	if err := st.readCanaries(ctx, images...); err != nil { // before what may have ended them
		return nil, fmt.Errorf("list canaries: %w", err)
	}
	if err := st.readVerdicts(ctx, images...); err != nil {
		return nil, fmt.Errorf("list verdicts: %w", err)
	}
	if err := st.notePauses(ctx, images...); err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return images, nil
}

// Image reads one image with its builds and uploads, or fails with ErrNotFound.
func (st *Store) Image(ctx context.Context, name string) (*Image, error) {
	if _, ok, err := st.session.Known(ctx, ImagePath(name)); err != nil || !ok {
		return nil, fmt.Errorf("read image %s: %w", name, cmp.Or(err, ErrNotFound))
	}
	image, err := st.readImage(ctx, name)
	if err == nil {
		err = st.readBuilds(ctx, image)
	}
	if err == nil {
		err = st.readCanaries(ctx, image) // before what may have ended them
	}
	if err == nil {
		err = st.readVerdicts(ctx, image)
	}
	if err == nil {
		err = st.notePauses(ctx, image)
	}
	if err != nil {
		return nil, fmt.Errorf("read image %s: %w", name, err)
	}
	return image, nil
}

// readBuilds reads the builds of images of which only the ids are known, and their
// uploads.
func (st *Store) readBuilds(ctx context.Context, images ...*Image) error {
	type build struct {
		*BuildTree
		gaps  []Gap
		image *Image
	}
	var all []*build
	for _, image := range images {
		for _, b := range image.Builds {
			all = append(all, &build{BuildTree: b, image: image})
		}
		image.Builds = nil
	}
	read, err := gather(ctx, all, func(ctx context.Context, b *build) (_ *build, err error) {
		b.BuildTree, b.gaps, err = st.readBuildTree(ctx, b.Image, b.ID)
		return b, err
	})
	if err != nil {
		return err
	}
	for _, b := range read {
		b.image.Builds = append(b.image.Builds, b.BuildTree)
		b.image.Gaps = append(b.image.Gaps, b.gaps...)
	}
	for _, image := range images {
		image.sortTree()
		image.Unread = image.unread()
	}
	return nil
}

// Nodes reads all nodes, by id. One that cannot be read is Broken, and one of which
// nobody can tell is taken for locked.
func (st *Store) Nodes(ctx context.Context) ([]*Node, error) {
	ids, err := st.children(ctx, NodesRoot)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes, err := gatherRead(ctx, st.session, ids, func(id string) []recipe.Read {
		return []recipe.Read{recipe.ReadData(NodePath(id)), recipe.ReadChildren(LockPath(NodePath(id)))}
	}, func(ctx context.Context, id string, got []recipe.ReadResult) (*Node, error) {
		n, err := nodeOf(id, got[0].Data, got[0].Stat, got[0].Err)
		if err = st.orBroken(ctx, err, NodePath(id), func(stat recipe.Stat, broken error) {
			n = &Node{ID: id, Stat: stat, Broken: broken}
		}); err != nil {
			return nil, err
		}
		n.Locked, err = orLocked(recipe.LockedBy(got[1].Children, got[1].Err))
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

// Requests reads all node requests, in the order in which they are served. One that
// cannot be read is Broken.
func (st *Store) Requests(ctx context.Context) ([]*Request, error) {
	ids, err := st.children(ctx, RequestsRoot)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	requests, err := gatherRead(ctx, st.session, ids, func(id string) []recipe.Read {
		return []recipe.Read{recipe.ReadData(RequestPath(id))}
	}, func(ctx context.Context, id string, got []recipe.ReadResult) (*Request, error) {
		r, err := requestOf(id, got[0].Data, got[0].Stat, got[0].Err)
		err = st.orBroken(ctx, err, RequestPath(id), func(stat recipe.Stat, broken error) {
			r = &Request{ID: id, Stat: stat, Broken: broken}
		})
		return r, err
	})
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
	pause, paused, err := st.session.Known(ctx, PausePath(name))
	if err != nil {
		return nil, err
	}
	image.Paused, image.PausedSince, image.pauseFlag = paused, pause.Czxid, pause
	stat, asked, err := st.session.Known(ctx, RequestBuildPath(name))
	if err != nil {
		return nil, err
	}
	if asked {
		image.BuildRequested = &stat
	}
	if image.BuildsLocked, err = st.isLocked(ctx, BuildsLockPath(name)); err != nil {
		return nil, err
	}
	ids, err := st.children(ctx, BuildsPath(name))
	if recipe.Unreadable(err) {
		image.Gaps, err = append(image.Gaps, Gap{Err: err}), nil
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		image.Builds = append(image.Builds, &BuildTree{Build: &Build{Image: name, ID: id}})
	}
	return image, nil
}

// readBuildTree reads a build and its uploads, and tells which lists of uploads could
// not be read.
func (st *Store) readBuildTree(ctx context.Context, image, id string) (*BuildTree, []Gap, error) {
	b, err := st.Build(ctx, image, id)
	if err = st.orBroken(ctx, err, BuildPath(image, id), func(stat recipe.Stat, broken error) {
		b = &Build{Image: image, ID: id, Stat: stat, Broken: broken}
	}); err != nil {
		return nil, nil, err
	}
	tree := &BuildTree{Build: b}
	providers, err := st.children(ctx, ProvidersPath(image, id))
	if recipe.Unreadable(err) {
		return tree, []Gap{{Build: id, Err: err}}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var gaps []Gap
	for _, provider := range providers {
		ids, err := st.children(ctx, UploadsPath(image, id, provider))
		if recipe.Unreadable(err) {
			gaps = append(gaps, Gap{Build: id, Provider: provider, Err: err})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, upload := range ids {
			u, err := st.listedUpload(ctx, UploadKey{image, id, provider, upload})
			switch {
			case err == nil:
				tree.Uploads = append(tree.Uploads, u)
			case !errors.Is(err, ErrNotFound):
				return nil, nil, err
			}
		}
	}
	return tree, gaps, nil
}

// listedUpload reads an upload for a listing.
func (st *Store) listedUpload(ctx context.Context, key UploadKey) (*Upload, error) {
	u, err := st.Upload(ctx, key)
	err = st.orBroken(ctx, err, key.Path(), func(stat recipe.Stat, broken error) {
		u = &Upload{UploadKey: key, Stat: stat, Broken: broken}
	})
	return u, err
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

// gatherRead is gather for items that few reads make known: wants are those of one, and made
// makes an R of what they brought. The reads of several items go to the server together.
func gatherRead[R any](
	ctx context.Context, s *recipe.Session, ids []string, wants func(id string) []recipe.Read,
	made func(ctx context.Context, id string, got []recipe.ReadResult) (*R, error),
) ([]*R, error) {
	found, err := gatherBy(ctx, readersOfMany, slices.Collect(slices.Chunk(ids, together)), func(ctx context.Context, ids []string) (*[]*R, error) {
		var reads []recipe.Read
		for _, id := range ids {
			reads = append(reads, wants(id)...)
		}
		got := s.ReadMany(ctx, reads...)
		list, each := make([]*R, 0, len(ids)), len(reads)/len(ids)
		for i, id := range ids {
			one, err := made(ctx, id, got[i*each:(i+1)*each])
			switch {
			case err == nil:
				list = append(list, one)
			case !errors.Is(err, ErrNotFound):
				return nil, err
			}
		}
		return &list, nil
	})
	all := make([]*R, 0, len(ids))
	for _, list := range found {
		all = append(all, *list...)
	}
	return all, err
}

// gather reads an R for every item, many at once, in the order of the items.
// What is not found is left out.
func gather[T, R any](ctx context.Context, items []T, read func(context.Context, T) (*R, error)) ([]*R, error) {
	return gatherBy(ctx, readers, items, read)
}

func gatherBy[T, R any](ctx context.Context, readers int, items []T, read func(context.Context, T) (*R, error)) ([]*R, error) {
	found := make([]*R, len(items))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(readers, len(items)) { // few goroutines for many items: each new one would have to grow its stack
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return nil
				}
				one, err := read(ctx, items[i])
				switch {
				case err == nil:
					found[i] = one
				case !errors.Is(err, ErrNotFound):
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r *R) bool { return r == nil }), nil
}

// Components reads the daemons or pools of a kind that run.
func (st *Store) Components(ctx context.Context, kind string) ([]*Component, error) {
	members, err := recipe.Members(ctx, st.session, ComponentsRoot+"/"+kind)
	if err != nil {
		return nil, fmt.Errorf("list %s components: %w", kind, err)
	}
	list := make([]*Component, 0, len(members))
	for _, m := range members {
		list = append(list, DecodeComponent(m.Name, m.Data))
	}
	return list, nil
}
