package actions

import (
	"errors"
	"strings"
	"testing"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// known has the record name the image.
func known(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("of " + u.ID) }

// An upload leaves its cloud first, and then the tree. Mistake: a record goes whose image is in the cloud still; an image goes
// while launchers may take it; or one of another upload goes.
func TestUploadIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	u, other := r.upload(b, zkmodel.UploadReady, known), r.upload(b, zkmodel.UploadReady)
	r.config.Providers[0].DiskImages = nil // north no longer lists it
	down := errors.New("the cloud is down")
	r.north.deletes = map[string]error{"of " + u.ID: down}
	r.at[step.DeleteMarked] = func() {
		if now, err := r.Store.Upload(t.Context(), u.UploadKey); err != nil || now.State != zkmodel.UploadDeleting {
			t.Errorf("when its image goes the record is %s: %v", now.State, err)
		}
	}
	if err := r.Do(t.Context(), action(plan.DeleteUpload, u.UploadKey)); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	r.is(u.Path(), true, step.DeleteMarked)
	if now, err := r.Store.Upload(t.Context(), u.UploadKey); err != nil || now.DeleteError != down.Error() {
		t.Errorf("the record says %q: %v", now.DeleteError, err)
	}
	r.north.holds(t, "of "+u.ID, "of "+other.ID)
	r.north.deletes = nil
	if err := r.Do(t.Context(), action(plan.DeleteUpload, u.UploadKey)); err != nil {
		t.Error(err)
	}
	r.is(u.Path(), false, step.DeleteCloud, step.DeleteUpload)
	r.is(other.Path(), true)
	r.north.holds(t, "of "+other.ID)
	if r.north.looks > 0 || !r.said.has("Upload deleted") {
		t.Errorf("%d looks for what has a name; logged:\n%s", r.north.looks, r.said.text.String())
	}
	if err := r.Do(t.Context(), action(plan.DeleteUpload, u.UploadKey)); err != nil {
		t.Errorf("again: %v", err)
	}
}

// What a plan said of an upload some time ago. Mistake: something is deleted that nobody wants deleted any more, that another is at, or of which
// nobody knows what it is.
func TestUploadIsNotDeleted(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	wanted := r.upload(b, zkmodel.UploadReady, known)
	if err := r.Do(t.Context(), action(plan.DeleteUpload, wanted.UploadKey)); !errors.Is(err, ErrStale) {
		t.Errorf("wanted: %v", err)
	}
	r.is(wanted.Path(), true)

	lock, _, err := r.Store.LockUpload(t.Context(), wanted.UploadKey)
	r.must(err)
	if err := r.Do(t.Context(), action(plan.DeleteUpload, wanted.UploadKey)); !errors.Is(err, recipe.ErrLocked) || !Held(err) {
		t.Errorf("locked: %v", err)
	}
	r.must(lock.Release(t.Context()))
	r.is(wanted.Path(), true)

	garbled := r.upload(b, zkmodel.UploadDeleting)
	_, err = r.Store.Session().Set(t.Context(), garbled.Path(), []byte("{"), recipe.AnyVersion)
	r.must(err)
	if err := r.Do(t.Context(), action(plan.DeleteUpload, garbled.UploadKey)); err == nil || !strings.Contains(err.Error(), "decode record") {
		t.Errorf("garbled: %v", err)
	}
	r.is(garbled.Path(), true)

	elsewhere := action(plan.DeleteUpload, wanted.UploadKey)
	elsewhere.Provider = "nowhere"
	if err := r.Do(t.Context(), elsewhere); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a cloud that cannot be opened: %v", err)
	}
	r.north.holds(t, "of "+wanted.ID, "of "+garbled.ID)
}

// Mistake: who has lost its lock goes on: an image goes that is another's by then, or it is said that all went well.
func TestLostLockDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state zkmodel.UploadState
		named bool // by the record
		lose  func(r *room, u *zkmodel.Upload)
		steps []step.Step
		left  bool // the image
	}{
		"before it is marked": {zkmodel.UploadReady, true, func(r *room, u *zkmodel.Upload) {
			r.decided = func() { r.lose(zkmodel.LockPath(u.Path())) }
		}, nil, true},
		"before the record goes": {zkmodel.UploadDeleting, false, func(r *room, u *zkmodel.Upload) {
			r.at[step.DeleteCloud] = func() { r.lose(zkmodel.LockPath(u.Path())) }
		}, []step.Step{step.DeleteCloud}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			u := r.upload(r.build(), c.state, func(u *zkmodel.Upload) {
				if c.named {
					known(u)
				}
			})
			r.config.Providers[0].DiskImages = nil
			c.lose(r, u)
			if err := r.Do(t.Context(), action(plan.DeleteUpload, u.UploadKey)); err == nil || errors.Is(err, ErrStale) {
				t.Errorf("got %v", err)
			}
			r.is(u.Path(), true, c.steps...)
			if r.said.has("Upload deleted") || len(r.north.images) > 0 != c.left {
				t.Errorf("in the cloud: %v; logged:\n%s", r.north.images, r.said.text.String())
			}
		})
	}
	r := newRoom(t)
	u := r.upload(r.build(), zkmodel.UploadDeleting)
	r.decided = r.client.Close // the session ends
	if err := r.Do(t.Context(), action(plan.DeleteUpload, u.UploadKey)); err == nil || errors.Is(err, ErrStale) || r.north.looks > 0 || len(r.steps) > 0 {
		t.Errorf("without a session: %d looks, steps %q: %v", r.north.looks, r.steps, err)
	}
}

// A record that never held anything goes, unless the cloud has an image of it. Mistake: such an image is nobody's then.
func TestEmptyRecordOfAnUpload(t *testing.T) {
	t.Parallel()
	down := errors.New("the cloud is down")
	for name, c := range map[string]struct {
		lists error
		build string // of the image that the cloud has
		want  error
	}{
		"the cloud has nothing":     {build: "0000000099"},
		"the cloud has its image":   {want: ErrStale},
		"the cloud does not answer": {lists: down, build: "0000000099", want: down},
		"the cloud has no list":     {lists: providers.ErrNotSupported, build: "0000000099"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			b := r.build()
			key := zkmodel.UploadKey{Image: "img", Build: b.ID, Provider: "north", ID: "0000000007"}
			r.empty(key.Path())
			r.north.images = append(r.north.images, image("x", key))
			if c.build != "" {
				r.north.images[0].Metadata[providers.MetaBuild] = c.build
			}
			r.north.lists = c.lists
			if err := r.Do(t.Context(), action(plan.DeleteUpload, key)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			r.is(key.Path(), c.want != nil)
			r.north.holds(t, "x")
		})
	}
	r := newRoom(t)
	key := zkmodel.UploadKey{Image: "img", Build: r.build().ID, Provider: "north", ID: "0000000007"}
	r.empty(key.Path())
	r.decided = func() { r.lose(zkmodel.LockPath(key.Path())) }
	if err := r.Do(t.Context(), action(plan.DeleteUpload, key)); err == nil || !strings.Contains(err.Error(), "delete upload "+key.Path()) {
		t.Errorf("the lock is lost: %v", err)
	}
	r.is(key.Path(), true)
}

// What a builder that is gone was sending. Mistake: the cloud keeps what it had got of it, or the record goes although the cloud has not
// answered; or an upload is taken for abandoned that is ready, or that another builder has.
func TestUploadOfABuilderThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.build()
	u, ready := r.upload(b, zkmodel.UploadUploading), r.upload(b, zkmodel.UploadReady)
	do := func(u zkmodel.UploadKey) error { return r.Do(t.Context(), action(plan.ReclaimUpload, u)) }

	lock, err := r.Store.LockUploads(t.Context(), "img", b.ID, "north")
	r.must(err)
	if err := do(u.UploadKey); !errors.Is(err, recipe.ErrLocked) || !Held(err) {
		t.Errorf("another builder has it: %v", err)
	}
	r.must(lock.Release(t.Context()))
	down := errors.New("the cloud is down")
	r.north.deletes = map[string]error{"of " + u.ID: down}
	if err := do(u.UploadKey); !errors.Is(err, down) {
		t.Errorf("the cloud is down: %v", err)
	}
	if err := do(ready.UploadKey); !errors.Is(err, ErrStale) {
		t.Errorf("ready: %v", err)
	}
	r.is(u.Path(), true)
	r.north.holds(t, "of "+u.ID, "of "+ready.ID)

	r.north.deletes = nil
	for what, gone := range map[string]zkmodel.UploadKey{
		"record":  {Image: "img", Build: b.ID, Provider: "north", ID: "0000000099"},
		"build":   {Image: "img", Build: "0000000099", Provider: "north", ID: u.ID},
		"at last": u.UploadKey,
	} {
		if err := do(gone); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.is(u.Path(), false, step.ReclaimCloud, step.ReclaimUpload)
	r.is(ready.Path(), true)
	r.north.holds(t, "of "+ready.ID)
	if !r.said.has("Upload of a builder that is gone was removed") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
	elsewhere := u.UploadKey
	elsewhere.Provider = "nowhere"
	if err := do(elsewhere); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a cloud that cannot be opened: %v", err)
	}
}

// Mistake: a builder that has lost the lock of uploads says that it has removed one.
func TestLostLockReclaimsNothing(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	u := r.upload(r.build(), zkmodel.UploadUploading)
	r.at[step.ReclaimCloud] = func() { r.lose(zkmodel.UploadsLockPath(u.Image, u.Build, u.Provider)) }
	if err := r.Do(t.Context(), action(plan.ReclaimUpload, u.UploadKey)); err == nil || !strings.Contains(err.Error(), "reclaim upload "+u.Path()) {
		t.Errorf("got %v", err)
	}
	r.is(u.Path(), true, step.ReclaimCloud)
	if r.said.has("was removed") {
		t.Error("it is said to be removed")
	}
	r.client.Close()
	if err := r.Do(t.Context(), action(plan.ReclaimUpload, u.UploadKey)); err == nil || len(r.steps) > 0 {
		t.Errorf("without a session: steps %q, %v", r.steps, err)
	}
}
