package zkmodel

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// LockUploads takes the lock of a build's uploads to one provider, which is
// held for the whole of an upload, or fails with recipe.ErrLocked at once. A
// build that is gone stays gone: ErrNotFound.
func (st *Store) LockUploads(ctx context.Context, image, build, provider string) (*recipe.Held, error) {
	if _, err := st.Build(ctx, image, build); err != nil {
		return nil, err
	}
	if err := st.ensureBelow(ctx, BuildPath(image, build), "providers", provider, "images"); err != nil {
		return nil, fmt.Errorf("lock uploads of %s-%s to %s: %w", image, build, provider, err)
	}
	return recipe.NewLock(st.session, LockPath(UploadsPath(image, build, provider)), "").Try(ctx)
}

// ensureBelow makes the folders below a record without ever making the record.
func (st *Store) ensureBelow(ctx context.Context, record string, names ...string) error {
	for _, name := range names {
		record += "/" + name
		_, err := st.session.Create(ctx, record, nil, recipe.Persistent)
		if err != nil && !isExists(err) {
			return notFound(err)
		}
	}
	return nil
}

// CreateUpload makes the record of a new upload under the lock of
// LockUploads and fills in its ID.
func (st *Store) CreateUpload(ctx context.Context, lock *recipe.Held, u *Upload) error {
	u.Token = newToken()
	begin(u, EpochOf(st.now()))
	data, err := u.Encode()
	if err != nil {
		return fmt.Errorf("create upload of %s-%s to %s: %w", u.Image, u.Build, u.Provider, err)
	}
	if u.ID, err = createNumbered(ctx, lock, UploadsPath(u.Image, u.Build, u.Provider), u.Token, data); err != nil {
		return fmt.Errorf("create upload of %s-%s to %s: %w", u.Image, u.Build, u.Provider, err)
	}
	u.Stat, err = st.wrote(ctx, u.Path(), 0)
	return err
}

// SaveUpload writes a changed upload under a lock: that of LockUploads, or the
// upload's own.
func (st *Store) SaveUpload(ctx context.Context, lock *recipe.Held, u *Upload) error {
	return st.save(ctx, lock, u)
}

// SaveReady is SaveUpload for one that becomes ready as no canary was there, by the record
// of these that was read (Store.Canary); nil when there was none. That record is written as it
// is, so that of two builds only one becomes ready by it.
//
// Errors: recipe.ErrVersion when a canary has begun meanwhile, or another build became ready,
// ErrNotFound when c is gone.
func (st *Store) SaveReady(ctx context.Context, lock *recipe.Held, u *Upload, c *Canary) error {
	if c == nil || c.Trial != nil { // which does not hold it up, and changes with each node
		return st.save(ctx, lock, u)
	}
	op, err := c.SetOp()
	if err != nil {
		return err
	}
	return st.save(ctx, lock, u, op)
}

// Upload reads one upload, or fails with ErrNotFound.
func (st *Store) Upload(ctx context.Context, key UploadKey) (*Upload, error) {
	data, stat, err := st.session.Get(ctx, key.Path())
	if err != nil {
		return nil, fmt.Errorf("read upload %s: %w", key.Path(), notFound(err))
	}
	return DecodeUpload(key, data, stat), nil
}

// LockUpload takes an upload's own lock, or fails with recipe.ErrLocked at once,
// and reads the upload afresh: checks made before the lock must be made again.
func (st *Store) LockUpload(ctx context.Context, key UploadKey) (*recipe.Held, *Upload, error) {
	lock, err := recipe.NewLock(st.session, LockPath(key.Path()), "").Try(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock upload %s: %w", key.Path(), notFound(err))
	}
	u, err := st.Upload(ctx, key)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, u, nil
}

// MarkUploadDeleting asks for an upload to be deleted from its cloud; a builder
// does it. One that is under way fails with ErrInProgress; for broken see
// MarkBuildDeleting.
func (st *Store) MarkUploadDeleting(ctx context.Context, by Actor, key UploadKey, broken bool) error {
	return st.withRecord(ctx, key.Path(), func(lock *recipe.Held) error {
		u, err := st.Upload(ctx, key)
		if err != nil {
			return err
		}
		if u.Unknown() && !broken {
			return fmt.Errorf("delete upload %s: %w: %w", key.Path(), ErrUndecodable, u.Broken)
		}
		if u.State == UploadDeleting {
			return nil
		}
		if u.State == UploadUploading {
			running, err := recipe.Locked(ctx, st.session, UploadsLockPath(key.Image, key.Build, key.Provider))
			if err != nil {
				return err
			}
			if running {
				return fmt.Errorf("delete upload %s: %w", key.Path(), ErrInProgress)
			}
		}
		if err := Move(u, UploadDeleting, by, EpochOf(st.now())); err != nil {
			return fmt.Errorf("delete upload: %w", err)
		}
		return st.save(ctx, lock, u)
	})
}

// DropUpload removes the record of an upload with all below it, under a lock, and tells
// why. The caller has made sure that the cloud has nothing of it any more.
func (st *Store) DropUpload(ctx context.Context, lock *recipe.Held, u *Upload, why string) error {
	data := u.eventData()
	data["reason"] = why
	return st.telling(ctx, func(also []recipe.Op) error {
		return lock.DeleteTree(ctx, u.Path(), also...)
	}, gone{event.UploadDeleted, u.subject(), data})
}

// DeleteUpload removes an upload's record. The caller has made sure that the
// cloud has nothing of it any more.
func (st *Store) DeleteUpload(ctx context.Context, key UploadKey) error {
	if err := st.session.DeleteTree(ctx, key.Path()); err != nil {
		return fmt.Errorf("delete upload %s: %w", key.Path(), err)
	}
	return nil
}
