package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// RequestBuild sets the flag that asks for a build of the image now. One that
// is there is replaced: what tells a request from one that a failed build has
// used up, or that a build under way serves, is the flag's creation.
func (st *Store) RequestBuild(ctx context.Context, image string) error {
	flag := RequestBuildPath(image)
	_, err := st.session.Multi(ctx, recipe.OpDelete(flag, recipe.AnyVersion), recipe.OpCreate(flag, nil, recipe.Persistent))
	if errors.Is(err, recipe.ErrNoNode) {
		return st.setFlag(ctx, flag)
	}
	if err != nil {
		return fmt.Errorf("set %s: %w", flag, err)
	}
	return nil
}

// PauseImage sets the flag that stops builds of the image.
func (st *Store) PauseImage(ctx context.Context, image string) error {
	if st.session.Log() == nil {
		return st.setFlag(ctx, PausePath(image))
	}
	err := st.session.EnsurePath(ctx, ImagePath(image))
	if err == nil {
		err = st.telling(ctx, func(also []recipe.Op) error {
			_, err := st.session.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpCreate(PausePath(image), nil, recipe.Persistent)}, also)...)
			return err
		}, gone{event.ImagePaused, "image/" + image, event.Data{"image": image}})
	}
	if err != nil && !isExists(err) {
		return fmt.Errorf("set %s: %w", PausePath(image), err)
	}
	return nil
}

// PauseImageBy is PauseImage by a person, with what is to be said of it. A pause that is there
// is replaced.
func (st *Store) PauseImageBy(ctx context.Context, image string, p Pause) error {
	err := st.session.EnsurePath(ctx, ImagePath(image))
	if err == nil {
		told := gone{event.ImagePaused, ImageSubject(image), p.eventData("image", image)}
		err = PauseFlag(ctx, st.session, ImageSubject(image), PausePath(image), nil, p, st.written(ctx, told))
	}
	if err != nil {
		return fmt.Errorf("pause image %s: %w", image, err)
	}
	return nil
}

// written writes a transaction together with an event.
func (st *Store) written(ctx context.Context, told gone) func(...recipe.Op) error {
	return func(ops ...recipe.Op) error {
		return st.telling(ctx, func(also []recipe.Op) error {
			_, err := st.session.Multi(ctx, slices.Concat(ops, also)...)
			return err
		}, told)
	}
}

// UnpauseImage clears that flag, and what is noted of it; clearing what is not set is no error.
func (st *Store) UnpauseImage(ctx context.Context, image string) error {
	return st.UnpauseImageBy(ctx, image, "", nil)
}

// UnpauseImageBy is UnpauseImage by a person or a rule that is named. seen, when not nil, is
// the pause that it ends, and no other.
func (st *Store) UnpauseImageBy(ctx context.Context, image, by string, seen *FlagPause) error {
	data := event.Data{"image": image}
	if by != "" {
		data["by"] = by
	}
	told := gone{event.ImageUnpaused, ImageSubject(image), data}
	if _, err := EndFlag(ctx, st.session, ImageSubject(image), PausePath(image), seen, st.written(ctx, told)); err != nil {
		return fmt.Errorf("unpause %s: %w", image, err)
	}
	return nil
}

// ImagePaused reports whether the flag that stops builds of the image is set.
func (st *Store) ImagePaused(ctx context.Context, image string) (bool, error) {
	_, paused, err := st.session.Exists(ctx, PausePath(image))
	if err != nil {
		return false, fmt.Errorf("read flags of %s: %w", image, err)
	}
	return paused, nil
}

// ClearBuildRequest removes a request-build flag under the image's build lock,
// unless the flag is newer than the one that the caller has seen, by its
// creation's transaction: a request made during the build asks for another.
func (st *Store) ClearBuildRequest(ctx context.Context, lock *recipe.Held, image string, seen int64) error {
	for {
		stat, ok, err := st.session.Exists(ctx, RequestBuildPath(image))
		if err != nil {
			return fmt.Errorf("clear build request of %s: %w", image, err)
		}
		if !ok || stat.Czxid != seen {
			return nil
		}
		_, err = lock.Multi(ctx, recipe.OpDelete(RequestBuildPath(image), recipe.AnyVersion))
		if errors.Is(err, recipe.ErrConnectionLost) { // it may be gone, and another be there by now
			err = st.session.Sync(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return fmt.Errorf("clear build request of %s: %w", image, err)
		}
		return nil
	}
}

// WithdrawBuild removes the flag that asks for a build of the image, under the image's
// build lock, so that nobody begins the build meanwhile.
//
// Errors: ErrNotFound when nobody asks, recipe.ErrLocked when it is being built.
func (st *Store) WithdrawBuild(ctx context.Context, image string) error {
	stat, asked, err := st.session.Exists(ctx, RequestBuildPath(image))
	if err == nil && !asked {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("withdraw build request of %s: %w", image, err)
	}
	lock, err := st.LockBuilds(ctx, image)
	if err != nil {
		return fmt.Errorf("withdraw build request of %s: %w", image, err)
	}
	err = st.ClearBuildRequest(ctx, lock, image, stat.Czxid)
	return errors.Join(err, lock.Release(ctx))
}

// setFlag makes an empty znode, and its parents.
func (st *Store) setFlag(ctx context.Context, flag string) error {
	if err := st.session.EnsurePath(ctx, flag); err != nil {
		return fmt.Errorf("set %s: %w", flag, err)
	}
	return nil
}

// isExists reports whether a create found the znode there.
func isExists(err error) bool { return errors.Is(err, recipe.ErrNodeExists) }

// newToken makes a name that nobody else has.
func newToken() string { return kit.RandomHex(16) }
