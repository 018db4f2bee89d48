package site

import (
	"errors"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// image makes a ready build of an image, with a ready upload in each cloud.
func (w *world) image(name string) {
	w.t.Helper()
	ctx := w.t.Context()
	if err := w.store.Session().EnsurePath(ctx, zkmodel.BuildsPath(name)); err != nil {
		w.t.Fatal(err)
	}
	lock, err := w.store.LockBuilds(ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	b := &zkmodel.Build{Image: name, Formats: zkmodel.Formats{"qcow2"}}
	err = w.store.CreateBuild(ctx, lock, b)
	if err == nil {
		b.State, b.StateTime = zkmodel.BuildReady, zkmodel.EpochOf(time.Now())
		err = w.store.SaveBuild(ctx, lock, b)
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		w.t.Fatal(err)
	}
	for _, cloud := range names {
		w.upload(b, cloud)
	}
}

func (w *world) upload(b *zkmodel.Build, cloud string) {
	w.t.Helper()
	ctx := w.t.Context()
	lock, err := w.store.LockUploads(ctx, b.Image, b.ID, cloud)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: cloud}, Format: "qcow2"}
	err = w.store.CreateUpload(ctx, lock, u)
	if err == nil {
		u.ExternalID = zkmodel.TextValue(w.clouds.PlantImage(cloud, b.Image, map[string]string{providers.MetaProvider: cloud, providers.MetaSite: w.site}))
		u.State, u.StateTime = zkmodel.UploadReady, zkmodel.EpochOf(time.Now())
		err = w.store.SaveUpload(ctx, lock, u)
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		w.t.Fatal(err)
	}
}
