package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// ErrInTheWay says that a tree is not one that records are brought back into.
var ErrInTheWay = errors.New("the tree is in use")

// Look is how a tree compares with a backup.
type Look struct {
	Missing Data     // what the backup has and the tree has not, in all its paths
	Same    int      // how many records are there already
	Differs []string // paths that both have, otherwise
	More    []string // paths that only the tree has
	Daemons []string // who runs
	// Left are images of which builds are not brought back, and why: they would be the newest.
	Left []error
}

// Compare looks at a tree.
//
// Errors: recipe.ErrUnread where part of the tree cannot be read.
func Compare(ctx context.Context, store *zkmodel.Store, d Data) (*Look, error) {
	tree, unread, err := Read(ctx, store.Session())
	if err != nil {
		return nil, err
	}
	if len(unread) > 0 {
		return nil, fmt.Errorf("compare the tree with the backup: %w: %w", recipe.ErrUnread, unread[0])
	}
	d, _ = d.takeIDs()
	l := &Look{Missing: maps.Clone(d)}
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		switch text, has := d[path]; {
		case !has:
			l.More = append(l.More, path)
		case text != tree[path]:
			l.Differs = append(l.Differs, path)
		default:
			l.Same++
		}
		delete(l.Missing, path)
	}
	l.leave(d)
	for _, kind := range []string{zkmodel.KindBuilder, zkmodel.KindLauncher} {
		components, err := store.Components(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, c := range components {
			l.Daemons = append(l.Daemons, fmt.Sprintf("the %s on %s runs", kind, c.Hostname))
		}
	}
	return l, nil
}

// leave takes builds out of what is brought back that would come behind younger ones which
// the tree has: the order in which builds are made says which is the newest.
func (l *Look) leave(d Data) {
	younger := map[string]string{} // what the tree has and the file has not, by image
	for _, at := range l.More {
		if p, err := placeOf(at); err == nil && p.kind == build {
			younger[p.key.Image] = p.key.Build
		}
	}
	for _, i := range sorted(d, d) {
		before := younger[i.name]
		for _, b := range slices.Backward(i.builds) {
			record := zkmodel.BuildPath(i.name, b.id)
			if _, missing := l.Missing[record]; !missing {
				before = cmp.Or(before, b.id)
				continue
			}
			if before == "" {
				continue
			}
			l.Left = append(l.Left, fmt.Errorf("%w: image %s has build %s already: build %s is not brought back, as it would be the newest",
				ErrInTheWay, i.name, before, b.id))
			delete(l.Missing, record)
			for _, u := range b.uploads {
				delete(l.Missing, u.Path())
			}
		}
	}
}

// InTheWay says what keeps records from being brought back; nil where nothing does. What an
// earlier Restore has brought back does not.
func (l *Look) InTheWay() error {
	var why []error
	for _, daemon := range l.Daemons {
		why = append(why, fmt.Errorf("%w: %s", ErrInTheWay, daemon))
	}
	if n := len(l.More); n > 0 {
		why = append(why, fmt.Errorf("%w: it has %d records of images that the file does not have, as %s", ErrInTheWay, n, l.More[0]))
	}
	if n := len(l.Differs); n > 0 {
		why = append(why, fmt.Errorf("%w: it has %d records otherwise than the file, as %s", ErrInTheWay, n, l.Differs[0]))
	}
	return errors.Join(why...)
}

// Restore brings the records back that a tree does not have; those that it has stay as they
// are. The build locks of all images are held meanwhile, and each write stands behind
// that of its image. An image is paused before its builds are there, and asked for after.
// Verdicts, pins and canaries that the tree kept then name the new records, if Data has creation ids.
// What is there after an error is part of it: Restore again brings the rest.
//
// Errors: ErrInTheWay, with nothing written but locks, unless anyway; recipe.ErrLocked while
// an image is being built.
func Restore(ctx context.Context, store *zkmodel.Store, d Data, anyway bool) (look *Look, err error) {
	d, made := d.takeIDs()
	if look, err = Compare(ctx, store, d); err != nil {
		return nil, err
	}
	if err := look.InTheWay(); err != nil && !anyway {
		return look, err
	}
	images := sorted(look.Missing, d)
	locks := map[string]*recipe.Held{}
	defer func() {
		for _, lock := range locks {
			err = errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
		}
	}()
	for _, i := range images {
		if locks[i.name], err = store.LockBuilds(ctx, i.name); err != nil {
			delete(locks, i.name)
			return look, fmt.Errorf("lock the builds of image %s: %w", i.name, err)
		}
	}
	again, err := Compare(ctx, store, d) // nobody builds any more
	if err != nil {
		return look, err
	}
	if err := again.InTheWay(); err != nil && !anyway {
		return again, err
	}
	for _, i := range sorted(again.Missing, d) {
		lock := locks[i.name]
		if lock == nil {
			return look, fmt.Errorf("restore image %s: %w: its records have gone meanwhile", i.name, ErrInTheWay)
		}
		w := &writer{s: store.Session(), lock: lock, data: d}
		if err := w.image(ctx, i); err != nil {
			return look, fmt.Errorf("restore image %s: %w", i.name, err)
		}
	}
	return again, fitKept(ctx, store.Session(), made)
}
