package backup

import (
	"context"
	"fmt"
	"path"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Bounds of a transaction, and of what is made and deleted again to have numbers go on
// where they were.
const (
	maxOps    = 500
	maxBytes  = 512 << 10
	maxNumber = 1_000_000
)

// writer writes one image, under its build lock.
type writer struct {
	s    *recipe.Session
	lock *recipe.Held
	data Data

	ops  []recipe.Op
	size int
}

// image writes what is missing of an image.
func (w *writer) image(ctx context.Context, i *image) error {
	if i.pause {
		if err := w.create(ctx, zkmodel.PausePath(i.name)); err != nil {
			return err
		}
	}
	if err := w.numbers(ctx, zkmodel.BuildsPath(i.name), true, ids(i.builds)); err != nil {
		return err
	}
	for _, b := range i.builds {
		if err := w.build(ctx, i.name, b); err != nil {
			return fmt.Errorf("build %s: %w", b.id, err)
		}
	}
	if i.request {
		if err := w.create(ctx, zkmodel.RequestBuildPath(i.name)); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// build writes what is missing of a build, as one transaction where it fits into one: an
// upload that is not there is sent again.
func (w *writer) build(ctx context.Context, image string, b *tree) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	record := zkmodel.BuildPath(image, b.id)
	stat, there, err := w.s.Exists(ctx, record)
	if err != nil {
		return err
	}
	if err := w.record(ctx, record, there && stat.DataLength > 0, there); err != nil {
		return err
	}
	folders := map[string]bool{}
	if len(b.uploads) > 0 {
		if err := w.folder(ctx, zkmodel.ProvidersPath(image, b.id), there); err != nil {
			return err
		}
	}
	for _, u := range b.uploads {
		folder := zkmodel.UploadsPath(image, b.id, u.Provider)
		if !folders[folder] {
			folders[folder] = true
			if err := w.uploads(ctx, folder, there, b.uploads, u.Provider); err != nil {
				return err
			}
		}
		stat, known, err := recipe.Stat{}, false, error(nil)
		if there {
			stat, known, err = w.s.Exists(ctx, u.Path())
		}
		if err == nil {
			err = w.record(ctx, u.Path(), known && stat.DataLength > 0, known)
		}
		if err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// uploads makes the folder of a build's uploads to a provider.
func (w *writer) uploads(ctx context.Context, folder string, maybe bool, all []zkmodel.UploadKey, provider string) error {
	var names []string
	for _, u := range all {
		if u.Provider == provider {
			names = append(names, u.ID)
		}
	}
	err := w.folder(ctx, path.Dir(folder), maybe)
	if err == nil {
		err = w.folder(ctx, folder, maybe)
	}
	if err == nil {
		err = w.numbers(ctx, folder, maybe, names)
	}
	return err
}

// folder makes a znode without data, unless it is there, which it may be.
func (w *writer) folder(ctx context.Context, at string, maybe bool) error {
	if maybe {
		if _, there, err := w.s.Exists(ctx, at); err != nil || there {
			return err
		}
	}
	return w.add(ctx, 0, recipe.OpCreate(at, nil, recipe.Persistent))
}

// record writes a record that is not there, or is there without data.
func (w *writer) record(ctx context.Context, at string, full, there bool) error {
	text, wanted := w.data[at]
	switch {
	case !wanted || full:
		return nil
	case there:
		return w.add(ctx, len(text), recipe.OpSet(at, []byte(text), recipe.AnyVersion))
	}
	return w.create(ctx, at)
}

// create makes a znode of Data.
func (w *writer) create(ctx context.Context, at string) error {
	text := w.data[at]
	return w.add(ctx, len(text), recipe.OpCreate(at, []byte(text), recipe.Persistent))
}

// numbers has a folder count on behind the highest of some names: no number is used again.
func (w *writer) numbers(ctx context.Context, folder string, maybe bool, names []string) error {
	highest := -1
	for _, name := range names {
		if n, counted := number(name); counted {
			highest = max(highest, n)
		}
	}
	if highest >= maxNumber {
		return fmt.Errorf("%w: number %d is beyond what is counted up to, %d", ErrFile, highest, maxNumber)
	}
	next := 0
	if maybe {
		stat, there, err := w.s.Exists(ctx, folder)
		if err != nil {
			return err
		}
		if there {
			next, _ = number(recipe.SequentialName(stat)) // which is one
		}
	}
	for ; next <= highest; next++ {
		err := w.add(ctx, 0, recipe.OpCreate(folder+"/filler", nil, recipe.Persistent), recipe.OpDelete(folder+"/filler", recipe.AnyVersion))
		if err != nil {
			return err
		}
	}
	return nil
}

// add keeps steps for a transaction, which is sent when it is full.
func (w *writer) add(ctx context.Context, size int, ops ...recipe.Op) error {
	if len(w.ops)+len(ops) > maxOps || w.size+size > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.ops, w.size = append(w.ops, ops...), w.size+size
	return nil
}

// flush sends what is kept, behind the lock.
func (w *writer) flush(ctx context.Context) error {
	if len(w.ops) == 0 {
		return nil
	}
	_, err := w.lock.Multi(ctx, w.ops...)
	w.ops, w.size = nil, 0
	return err
}

// ids are those of builds.
func ids(builds []*tree) []string {
	names := make([]string, 0, len(builds))
	for _, b := range builds {
		names = append(names, b.id)
	}
	return names
}
