package zkmodel

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/recipe"
)

// orBroken is for listings: after the reading of the record at path has ended with
// err, it has instead make a record that says why it could not be read, with the Stat,
// which needs no rights before ZooKeeper 3.9. Other errors, and ErrNotFound, are the caller's.
func (st *Store) orBroken(ctx context.Context, err error, path string, instead func(stat recipe.Stat, broken error)) error {
	if !recipe.Unreadable(err) {
		return err
	}
	stat, there, gone := st.session.Known(ctx, path)
	if gone == nil && !there {
		gone = ErrNotFound
	}
	if gone != nil {
		return fmt.Errorf("read %s: %w", path, gone)
	}
	instead(stat, fmt.Errorf("%w: %w", recipe.ErrUnread, err))
	return nil
}

// isLocked reports whether a lock is held or wanted; where nobody can tell, it may
// be held.
func (st *Store) isLocked(ctx context.Context, lock string) (bool, error) {
	return orLocked(recipe.Locked(ctx, st.session, lock))
}

// orLocked takes for locked what nobody can tell of.
func orLocked(locked bool, err error) (bool, error) {
	if recipe.Unreadable(err) {
		return true, nil
	}
	return locked, err
}

// unread says what of an image could not be read, as Image.Unread does.
func (i *Image) unread() error {
	var first error
	n := 0
	note := func(path string, err error) {
		if n++; first == nil {
			first = fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, gap := range i.Gaps {
		note(gap.path(i.Name), fmt.Errorf("%w: %w", recipe.ErrUnread, gap.Err))
	}
	for _, b := range i.Builds {
		if errors.Is(b.Broken, recipe.ErrUnread) {
			note(b.Path(), b.Broken)
		}
		for _, u := range b.Uploads {
			if errors.Is(u.Broken, recipe.ErrUnread) {
				note(u.Path(), u.Broken)
			}
		}
	}
	if n > 1 {
		return fmt.Errorf("%w (%d in all)", first, n)
	}
	return first
}

// path is that of the list.
func (g Gap) path(image string) string {
	switch {
	case g.Build == "":
		return BuildsPath(image)
	case g.Provider == "":
		return ProvidersPath(image, g.Build)
	}
	return UploadsPath(image, g.Build, g.Provider)
}
