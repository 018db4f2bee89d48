package actions

import (
	"errors"
	"strings"
	"testing"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Mistake: an image of another upload, build, image, provider or installation is taken for what is left of an upload.
func TestWhatIsLeftOfAnUploadIsKnownByAllMarks(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	u := r.upload(r.build(), zkmodel.UploadUploading)
	r.north.images = []providers.Image{
		image("its", u.UploadKey),
		image("site", u.UploadKey, providers.MetaSite, "theirs"),
		image("image", u.UploadKey, providers.MetaImage, "img2"),
		image("build", u.UploadKey, providers.MetaBuild, "0000000055"),
		image("upload", u.UploadKey, providers.MetaUpload, "0000000055"),
		image("provider", u.UploadKey, providers.MetaProvider, "south"),
		image("its, too", u.UploadKey),
	}
	if err := r.Do(t.Context(), action(plan.ReclaimUpload, u.UploadKey)); err != nil {
		t.Error(err)
	}
	r.is(u.Path(), false, step.ReclaimCloud, step.ReclaimUpload)
	r.north.holds(t, "site", "image", "build", "upload", "provider")
}

// Mistake: one image that cannot be deleted, or a list that fails, has the record go all the same; or a cloud without lists keeps it for ever.
func TestRecordStaysAsLongAsTheCloudHasSomething(t *testing.T) {
	t.Parallel()
	down := errors.New("the cloud is down")
	for name, c := range map[string]struct {
		lists, deletes error
		want           error
		left           []string
	}{
		"one image stays":        {deletes: down, want: down, left: []string{"first"}},
		"the list fails":         {lists: down, want: down, left: []string{"first", "second"}},
		"the cloud has no lists": {lists: providers.ErrNotSupported, left: []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			u := r.upload(r.build(), zkmodel.UploadUploading)
			r.north.images = []providers.Image{image("first", u.UploadKey), image("second", u.UploadKey)}
			r.north.lists, r.north.deletes = c.lists, map[string]error{"first": c.deletes}
			if err := r.Do(t.Context(), action(plan.ReclaimUpload, u.UploadKey)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if got := r.there(u.Path()); got != (c.want != nil) {
				t.Errorf("its record is there: %t", got)
			}
			r.north.holds(t, c.left...)
		})
	}
}

// No image goes without a proof, or with that of another upload.
func TestNoImageGoesWithoutProof(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	u, other := r.upload(b, zkmodel.UploadDeleting), r.upload(b, zkmodel.UploadDeleting)
	lock, now, err := r.Store.LockUpload(t.Context(), other.UploadKey)
	r.must(err)
	proof, err := zkmodel.UnderLock(lock, now)
	r.must(err)
	l, done, err := r.use(r.config, "north")
	r.must(err)
	defer done()
	for _, p := range []zkmodel.Proof{{}, proof} {
		if err := l.remove(t.Context(), p, u.UploadKey, "of "+u.ID); !errors.Is(err, zkmodel.ErrUnproven) {
			t.Errorf("got %v", err)
		}
	}
	r.must(lock.Release(t.Context()))
	r.north.holds(t, "of "+u.ID, "of "+other.ID)
}

// The record of a build that never held anything goes, unless a cloud has an image of it. Mistake: a cloud that cannot be asked counts as one without.
func TestEmptyRecordOfABuild(t *testing.T) {
	t.Parallel()
	down := errors.New("the cloud is down")
	key := zkmodel.UploadKey{Image: "img", Build: "0000000009", Provider: "north", ID: "0000000001"}
	for name, c := range map[string]struct {
		image providers.Image
		lists error
		extra string // a provider more
		want  string // of the error
	}{
		"the clouds have nothing":          {image: image("x", key, providers.MetaBuild, "0000000008")},
		"the image is another's":           {image: image("x", key, providers.MetaImage, "img2")},
		"the image is of another site":     {image: image("x", key, providers.MetaSite, "theirs")},
		"a cloud has an image":             {image: image("x", key), want: "image x in north is of it"},
		"of an upload that nobody knows":   {image: image("x", key, providers.MetaUpload, "", providers.MetaProvider, ""), want: "image x in north is of it"},
		"a cloud does not answer":          {lists: down, want: "look for images of build img-0000000009 in north"},
		"a cloud has no lists":             {lists: providers.ErrNotSupported},
		"a cloud cannot be opened, behind": {extra: "nowhere", want: "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.empty(zkmodel.BuildPath("img", key.Build))
			r.north.images, r.north.lists = []providers.Image{c.image}, c.lists
			if c.extra != "" {
				r.config.Providers = append(r.config.Providers, r.config.Providers[0])
				r.config.Providers[2].Name = c.extra
			}
			err := r.leftInClouds(t.Context(), "img", key.Build)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if stale := errors.Is(err, ErrStale); stale != strings.Contains(c.want, "is of it") {
				t.Errorf("stale %t: %v", stale, err)
			}
		})
	}
}
