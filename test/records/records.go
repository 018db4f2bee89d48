// Package records writes into a tree what daemons would have written, for tests that want to find it there.
package records

import (
	"context"
	"errors"

	"poolkeeper/zkmodel"
)

// BuiltAndUploaded makes a ready build with ready uploads.
func BuiltAndUploaded(ctx context.Context, store *zkmodel.Store, image string, providers ...string) error {
	if err := store.Session().EnsurePath(ctx, zkmodel.BuildsPath(image)); err != nil {
		return err
	}
	lock, err := store.LockBuilds(ctx, image)
	if err != nil {
		return err
	}
	b := &zkmodel.Build{Image: image, Formats: zkmodel.Formats{"qcow2"}}
	err = store.CreateBuild(ctx, lock, b)
	if err == nil {
		err = zkmodel.Move(b, zkmodel.BuildReady, zkmodel.ByUs, 1)
	}
	err = errors.Join(err, store.SaveBuild(ctx, lock, b), lock.Release(ctx))
	for _, p := range providers {
		lock, lerr := store.LockUploads(ctx, image, b.ID, p)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: image, Build: b.ID, Provider: p}}
		err = errors.Join(err, store.CreateUpload(ctx, lock, u))
		u.ExternalID = zkmodel.TextValue("id")
		err = errors.Join(err, zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, 1), store.SaveUpload(ctx, lock, u), lock.Release(ctx))
	}
	return err
}
