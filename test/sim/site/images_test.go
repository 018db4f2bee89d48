package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// imageOf is what the labels boot from that need a ready image.
var imageOf = map[string]string{"small": "debian", "large": "fedora", "rare": "fedora"}

// builder is the client that images are built by; no fault of its own meets it.
const builder = "builder"

// rebuild has an image be built anew: first what was there goes, so that there is none for a while, or last. As soon
// as it is ready a requestor that rests asks for a label of it.
func (w *world) rebuild() {
	label, gone, d := sorted(imageOf)[w.rng.IntN(len(imageOf))], w.rng.IntN(2) == 0, w.while()
	image := imageOf[label]
	w.mu.Lock()
	busy := w.building[image]
	w.building[image] = true
	w.mu.Unlock()
	if busy {
		return
	}
	w.others.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.building[image] = false
		}()
		if gone {
			w.judge.Fault("rebuild", builder, "%s, of which there is none for %s", image, d)
			w.asBuilder(func(ctx context.Context, st *zkmodel.Store) error { return drop(ctx, st, image, "") })
			wait(d)
		} else {
			w.judge.Fault("rebuild", builder, "%s", image)
		}
		var id string
		w.asBuilder(func(ctx context.Context, st *zkmodel.Store) (err error) {
			id, err = w.image(ctx, st, image)
			return err
		})
		select {
		case w.arrived <- label:
			w.judge.Count("requests for an image that is just ready")
		default: // nobody waits
		}
		w.asBuilder(func(ctx context.Context, st *zkmodel.Store) error { return drop(ctx, st, image, id) })
	})
}

// provide has all images be ready in the end: a restored tree may lack one that is never built again.
func (w *world) provide() {
	for _, image := range w.version.load(w.t).DiskImages {
		w.asBuilder(func(ctx context.Context, st *zkmodel.Store) error {
			if err := st.Session().EnsurePath(ctx, zkmodel.BuildsPath(image.Name)); err != nil {
				return err
			}
			now, err := st.Image(ctx, image.Name)
			if err != nil {
				return err
			}
			for _, cloud := range names {
				if now.Serving(cloud, zkmodel.Suspect) == nil {
					_, err := w.image(ctx, st, image.Name)
					return err
				}
			}
			return nil
		})
	}
}

// asBuilder does something in a session of its own, as often as it takes: servers may fail.
func (w *world) asBuilder(do func(context.Context, *zkmodel.Store) error) {
	once := func() error {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(builder)})
		if err != nil {
			return err
		}
		defer client.Close() // and its locks go
		s, err := client.Session(ctx)
		if err != nil {
			return err
		}
		return do(ctx, zkmodel.NewStore(s, nil))
	}
	var err error
	for range 100 {
		if err = once(); err == nil {
			return
		}
		wait(time.Second)
	}
	w.judge.Wrong(builder, "cannot do its part: %v", err)
}

// image makes a ready build of an image, with a ready upload in each cloud, and is the build's id.
func (w *world) image(ctx context.Context, st *zkmodel.Store, name string) (string, error) {
	lock, err := st.LockBuilds(ctx, name)
	if err != nil {
		return "", err
	}
	b := &zkmodel.Build{Image: name, Formats: zkmodel.Formats{"qcow2"}}
	if err = st.CreateBuild(ctx, lock, b); err == nil {
		b.State, b.StateTime = zkmodel.BuildReady, zkmodel.EpochOf(time.Now())
		err = st.SaveBuild(ctx, lock, b)
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		return "", err
	}
	for _, cloud := range names {
		if err := w.upload(ctx, st, b, cloud); err != nil {
			return "", err
		}
	}
	return b.ID, nil
}

func (w *world) upload(ctx context.Context, st *zkmodel.Store, b *zkmodel.Build, cloud string) error {
	lock, err := st.LockUploads(ctx, b.Image, b.ID, cloud)
	if err != nil {
		return err
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: cloud}, Format: "qcow2"}
	if err = st.CreateUpload(ctx, lock, u); err == nil {
		u.ExternalID = zkmodel.TextValue(w.clouds.PlantImage(cloud, b.Image, map[string]string{providers.MetaProvider: cloud, providers.MetaSite: w.site}))
		u.State, u.StateTime = zkmodel.UploadReady, zkmodel.EpochOf(time.Now())
		err = st.SaveUpload(ctx, lock, u)
	}
	return errors.Join(err, lock.Release(ctx))
}

// drop deletes the builds of an image, but for one, as builders do.
func drop(ctx context.Context, st *zkmodel.Store, image, but string) error {
	now, err := st.Image(ctx, image)
	if err != nil {
		return err
	}
	for _, b := range now.Builds {
		if b.ID == but {
			continue
		}
		if err := st.MarkBuildDeleting(ctx, zkmodel.ByUs, image, b.ID, true); err != nil {
			return fmt.Errorf("mark build %s: %w", b.ID, err)
		}
		for _, u := range b.Uploads {
			if err := st.DeleteUpload(ctx, u.UploadKey); err != nil {
				return err
			}
		}
		if err := st.DeleteBuild(ctx, image, b.ID); err != nil {
			return err
		}
	}
	return nil
}
