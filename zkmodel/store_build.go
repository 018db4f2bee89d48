package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"poolkeeper/configs/planted"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// LockBuilds takes the image's build lock, which is held for the whole of a
// build, or fails with recipe.ErrLocked at once.
func (st *Store) LockBuilds(ctx context.Context, image string) (*recipe.Held, error) {
	return recipe.NewLock(st.session, BuildsLockPath(image), "", recipe.EnsureParents()).Try(ctx)
}

// CreateBuild makes the record of a new build under the image's build lock and
// fills in its ID: the next number, never used before.
func (st *Store) CreateBuild(ctx context.Context, lock *recipe.Held, b *Build) error {
	b.Token = newToken()
	begin(b, EpochOf(st.now()))
	data, err := b.Encode()
	if err != nil {
		return fmt.Errorf("create build of %s: %w", b.Image, err)
	}
	if b.ID, err = st.createBuild(ctx, lock, b, data); err != nil {
		return fmt.Errorf("create build of %s: %w", b.Image, err)
	}
	b.Stat, err = st.wrote(ctx, b.Path(), 0)
	return err
}

// createBuild makes the record and returns its number. Where it is told of, the number
// must be known before: it is how many nodes the folder has had, which is what ZooKeeper
// gives, and under the lock nobody makes another. A number that is taken fails.
func (st *Store) createBuild(ctx context.Context, lock *recipe.Held, b *Build, data []byte) (string, error) {
	if st.session.Log() == nil {
		return createNumbered(ctx, lock, BuildsPath(b.Image), b.Token, data)
	}
	stat, _, err := st.session.Exists(ctx, BuildsPath(b.Image))
	if err != nil {
		return "", err
	}
	b.ID = recipe.SequentialName(stat)
	err = st.telling(ctx, func(also []recipe.Op) error {
		_, err := lock.Create(ctx, b.Path(), data, recipe.Persistent, also...)
		return err
	}, b)
	return b.ID, err
}

// mostPassed is how many numbers are passed in one transaction.
const mostPassed = 100

// mostMissing is how many numbers are passed at most: no tree loses more builds than that, so a
// number further on was made by hand.
const mostMissing = 100_000

// ErrFar is the error of a number that is too far away to be passed.
var ErrFar = errors.New("numbers are too far apart")

// PassNumbers has the number of an image's next build be above one that there was before ZooKeeper
// went back in time; "" is none. It is called under the image's build lock. ZooKeeper counts the
// nodes that a folder has had, so nodes come that go in the same transaction.
//
// Errors: ErrFar, before anything is passed.
func (st *Store) PassNumbers(ctx context.Context, lock *recipe.Held, image, seen string) error {
	last, err := strconv.ParseInt(seen, 10, 32)
	if err != nil || planted.Bug("reuse") {
		return nil //nolint:nilerr // there was none, or it is not a number of ZooKeeper's
	}
	none := BuildsPath(image) + "/passed"
	for {
		stat, _, err := st.session.Exists(ctx, BuildsPath(image))
		if err != nil {
			return fmt.Errorf("pass numbers of builds of %s: %w", image, err)
		}
		next, err := strconv.ParseInt(recipe.SequentialName(stat), 10, 64)
		if err != nil || next > last {
			return err
		}
		if last-next >= mostMissing {
			return fmt.Errorf("pass numbers of builds of %s: %w: the next is %010d, and there was %s; a record of that number was made by hand: delete it, if it is still there",
				image, ErrFar, next, seen)
		}
		var ops []recipe.Op
		for range min(last-next+1, mostPassed) {
			ops = append(ops, recipe.OpCreate(none, nil, recipe.Persistent), recipe.OpDelete(none, recipe.AnyVersion))
		}
		if _, err = lock.Multi(ctx, ops...); err != nil && !errors.Is(err, recipe.ErrConnectionLost) {
			return fmt.Errorf("pass numbers of builds of %s: %w", image, err)
		}
	}
}

// SaveBuild writes a changed build under a lock: the image's build lock, or the
// build's own.
func (st *Store) SaveBuild(ctx context.Context, lock *recipe.Held, b *Build) error {
	return st.save(ctx, lock, b)
}

// Build reads one build, or fails with ErrNotFound.
func (st *Store) Build(ctx context.Context, image, id string) (*Build, error) {
	data, stat, err := st.session.Get(ctx, BuildPath(image, id))
	if err != nil {
		return nil, fmt.Errorf("read build %s-%s: %w", image, id, notFound(err))
	}
	return DecodeBuild(image, id, data, stat), nil
}

// MarkBuildDeleting asks for a build to be deleted, with its uploads and files;
// a builder does it. A build that is running fails with ErrInProgress, and one whose
// record nobody can decode with ErrUndecodable, unless broken says to take that for one
// that is to go.
func (st *Store) MarkBuildDeleting(ctx context.Context, by Actor, image, id string, broken bool) error {
	return st.withBuild(ctx, image, id, func(lock *recipe.Held, b *Build) error {
		if b.Unknown() && !broken {
			return fmt.Errorf("delete build %s: %w: %w", b.Name(), ErrUndecodable, b.Broken)
		}
		if b.State == BuildDeleting {
			return nil
		}
		if b.State == BuildBuilding {
			running, err := st.underWay(ctx, b)
			if err != nil {
				return err
			}
			if running {
				return fmt.Errorf("delete build %s: %w", b.Name(), ErrInProgress)
			}
		}
		if err := Move(b, BuildDeleting, by, EpochOf(st.now())); err != nil {
			return fmt.Errorf("delete build: %w", err)
		}
		return st.save(ctx, lock, b)
	})
}

// underWay reports whether a build in state building is really being made. Builds
// of an image are made one after the other, each under the image's build lock,
// so that one with a younger sibling was left by a builder that is gone.
func (st *Store) underWay(ctx context.Context, b *Build) (bool, error) {
	locked, err := recipe.Locked(ctx, st.session, BuildsLockPath(b.Image))
	if err != nil || !locked {
		return false, err
	}
	ids, err := st.children(ctx, BuildsPath(b.Image))
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		stat, ok, err := st.session.Exists(ctx, BuildPath(b.Image, id))
		if err != nil {
			return false, err
		}
		if ok && stat.Czxid > b.Stat.Czxid {
			return false, nil
		}
	}
	return true, nil
}

// LockBuild takes a build's own lock and reads the build afresh: checks made before
// the lock must be made again. It waits until ctx ends.
func (st *Store) LockBuild(ctx context.Context, image, id string) (*recipe.Held, *Build, error) {
	lock, err := recipe.NewLock(st.session, LockPath(BuildPath(image, id)), "").Acquire(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock build %s-%s: %w", image, id, notFound(err))
	}
	b, err := st.Build(ctx, image, id)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, b, nil
}

// DeleteBuild removes the record of a build that is marked as deleting, under its
// lock. The caller has made sure that no upload of it is left in a cloud; one that
// still has a record, or of which that cannot be told, fails with ErrInProgress.
func (st *Store) DeleteBuild(ctx context.Context, image, id string) error {
	return st.withBuild(ctx, image, id, func(lock *recipe.Held, b *Build) error {
		if b.State != BuildDeleting {
			return fmt.Errorf("delete build %s: it is %q: %w", b.Name(), b.State, ErrInProgress)
		}
		tree, gaps, err := st.readBuildTree(ctx, image, id)
		if err != nil {
			return fmt.Errorf("delete build %s: %w", b.Name(), err)
		}
		if len(gaps) > 0 {
			return fmt.Errorf("delete build %s: %w: it may have uploads: %w", b.Name(), ErrInProgress, gaps[0].Err)
		}
		if n := len(tree.Uploads); n > 0 {
			return fmt.Errorf("delete build %s: it has %d uploads: %w", b.Name(), n, ErrInProgress)
		}
		// The lock is below the record, so it ends within this.
		return st.DropBuild(st.session.Context(), lock, b, "") //nolint:contextcheck // see above
	})
}

// DropBuild removes the record of a build with all below it, under a lock, and tells why.
func (st *Store) DropBuild(ctx context.Context, lock *recipe.Held, b *Build, why string) error {
	data := event.Data{"image": b.Image, "build": b.ID, "builder": b.Builder, "reason": why}
	err := st.telling(ctx, func(also []recipe.Op) error {
		return lock.DeleteTree(ctx, b.Path(), also...)
	}, gone{event.BuildDeleted, b.subject(), data})
	if err != nil {
		return fmt.Errorf("delete build %s: %w", b.Name(), err)
	}
	return nil
}

// withBuild locks a build's own record, reads it afresh and runs change.
func (st *Store) withBuild(ctx context.Context, image, id string, change func(*recipe.Held, *Build) error) error {
	return st.withRecord(ctx, BuildPath(image, id), func(lock *recipe.Held) error {
		b, err := st.Build(ctx, image, id)
		if err != nil {
			return err
		}
		return change(lock, b)
	})
}

// withRecord runs change under the lock below a record. The lock never brings a
// deleted record back.
func (st *Store) withRecord(ctx context.Context, record string, change func(*recipe.Held) error) error {
	lock, err := recipe.NewLock(st.session, LockPath(record), "").Acquire(ctx)
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return fmt.Errorf("lock %s: %w", record, ErrNotFound)
	case errors.Is(err, recipe.ErrLocked):
		return fmt.Errorf("lock %s: %w", record, ErrBusy)
	case err != nil:
		return fmt.Errorf("lock %s: %w", record, err)
	}
	err = change(lock)
	return errors.Join(err, lock.Release(ctx))
}
