package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// readers is how many images are read at once.
const readers = 16

// Read reads the records of all images. What is deleted meanwhile is left out. What cannot
// be read, or is no text, is not in Data, and unread says why, one error each.
func Read(ctx context.Context, s *recipe.Session) (d Data, unread []error, err error) {
	r := &reader{s: s, data: Data{}}
	names := r.list(ctx, zkmodel.ImagesRoot)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, name := range names {
		group.Go(func() error {
			r.image(ctx, name)
			return ctx.Err()
		})
	}
	if err := errors.Join(group.Wait(), r.failed); err != nil {
		return nil, nil, fmt.Errorf("read the records of images: %w", err)
	}
	r.dropRemains()
	slices.SortFunc(r.unread, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return r.data, r.unread, nil
}

// reader reads the records of images.
type reader struct {
	s *recipe.Session

	mu     sync.Mutex
	data   Data
	unread []error
	failed error // of the connection
}

// image reads one image.
func (r *reader) image(ctx context.Context, image string) {
	r.record(ctx, zkmodel.PausePath(image))
	r.record(ctx, zkmodel.RequestBuildPath(image))
	for _, id := range r.list(ctx, zkmodel.BuildsPath(image)) {
		r.record(ctx, zkmodel.BuildPath(image, id))
		for _, provider := range r.list(ctx, zkmodel.ProvidersPath(image, id)) {
			for _, number := range r.list(ctx, zkmodel.UploadsPath(image, id, provider)) {
				r.record(ctx, zkmodel.UploadPath(image, id, provider, number))
			}
		}
	}
}

// list lists the children of a path, but for the lock among them.
func (r *reader) list(ctx context.Context, path string) []string {
	names, err := r.s.Children(ctx, path)
	r.note(path, err)
	return slices.DeleteFunc(names, func(name string) bool { return name == "lock" })
}

// record reads one znode.
func (r *reader) record(ctx context.Context, path string) {
	text, _, err := r.s.Get(ctx, path)
	if err == nil {
		if _, err = placeOf(path); err == nil && !utf8.Valid(text) {
			err = errors.New("it is no text")
		}
	}
	if err != nil {
		r.note(path, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data[path], _ = withoutID(string(text)) // which Nodepool imported
}

// note keeps why a path could not be read, unless there is nothing.
func (r *reader) note(path string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, recipe.ErrNoNode):
	case errors.Is(err, recipe.ErrSessionLost) || errors.Is(err, recipe.ErrConnectionLost) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipe.ErrClosed):
		r.failed = err
	default:
		r.unread = append(r.unread, fmt.Errorf("%s cannot be read: %w", path, err))
	}
}

// dropRemains takes builds and uploads out that hold nothing: a lock that was asked for when
// they were deleted has brought such a znode back. A build that has uploads stays. Uploads
// of a build that could not be read go, too: nothing could be done with them.
func (r *reader) dropRemains() {
	used := map[string]bool{}
	maps.DeleteFunc(r.data, func(path, text string) bool {
		p, _ := placeOf(path) // record has asked
		if p.kind == upload && text != "" {
			used[zkmodel.BuildPath(p.key.Image, p.key.Build)] = true
		}
		return p.kind == upload && text == ""
	})
	maps.DeleteFunc(r.data, func(path, text string) bool {
		p, _ := placeOf(path) // as above
		return p.kind == build && text == "" && !used[path]
	})
	maps.DeleteFunc(r.data, func(path, _ string) bool {
		p, _ := placeOf(path) // as above
		_, has := r.data[zkmodel.BuildPath(p.key.Image, p.key.Build)]
		return p.kind == upload && !has
	})
}
