package actions

import (
	"context"
	"errors"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// doubt has launchers have failed to boot from an upload.
func doubt(u *zkmodel.Upload) { known(u); u.Suspect = "no machine boots from it" }

// Mistake: the record of an image that its cloud has lost stays, and nothing boots for ever; or one goes that no launcher doubts, that
// the cloud lists, that does not serve, or that people have judged.
func TestWhatItsCloudHasLostIsForgotten(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b, judged := r.build(), r.build()
	lost, listed := r.upload(b, zkmodel.UploadReady, doubt), r.upload(b, zkmodel.UploadReady, doubt)
	trusted, failed := r.upload(b, zkmodel.UploadReady, known), r.upload(b, zkmodel.UploadFailed, doubt)
	rejected := r.upload(judged, zkmodel.UploadReady, doubt)
	verdicts := &zkmodel.Verdicts{Image: "img", List: []zkmodel.Verdict{{Build: judged.ID, BuildCzxid: judged.Stat.Czxid, Provider: "north", Reason: "it is bad"}}}
	data, err := verdicts.Encode()
	r.must(err)
	r.must(r.Store.Session().EnsurePath(t.Context(), zkmodel.VerdictsPath("img")))
	_, err = r.Store.Session().Set(t.Context(), zkmodel.VerdictsPath("img"), data, recipe.AnyVersion)
	r.must(err)
	garbled := r.upload(b, zkmodel.UploadReady, doubt)
	_, err = r.Store.Session().Set(t.Context(), garbled.Path(), []byte("{"), recipe.AnyVersion)
	r.must(err)
	r.north.images = []providers.Image{image("of "+listed.ID, listed.UploadKey)}

	r.must(r.mirror.Barrier(t.Context()))
	if err := r.search("south"); err != nil { // which is not theirs
		t.Error(err)
	}
	r.must(r.search("north"))
	for what, u := range map[string]*zkmodel.Upload{"listed": listed, "trusted": trusted, "failed": failed, "rejected": rejected, "garbled": garbled} {
		if !r.there(u.Path()) {
			t.Errorf("%s: its record is gone", what)
		}
	}
	if r.there(lost.Path()) || !r.said.has("The cloud has lost an image") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
}

// Mistake: a record that has changed since it was doubted goes; or one that cannot be had is said to be gone.
func TestForgottenIsWhatTheRecordSaysNow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*zkmodel.Upload){
		"it boots":       func(u *zkmodel.Upload) { u.Suspect = "" },
		"it is deleted":  func(u *zkmodel.Upload) { u.State = zkmodel.UploadDeleting },
		"it is sent new": func(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("new") },
	} {
		r := newRoom(t)
		u := r.upload(r.build(), zkmodel.UploadReady, doubt)
		lock, now, err := r.Store.LockUpload(t.Context(), u.UploadKey)
		r.must(err)
		change(now)
		r.must(errors.Join(r.Store.SaveUpload(t.Context(), lock, now), lock.Release(t.Context())))
		if err := r.forget(t.Context(), u); err != nil || !r.there(u.Path()) {
			t.Errorf("%s: its record is gone, or %v", name, err)
		}
	}
	r := newRoom(t)
	b := r.build()
	u, other := r.upload(b, zkmodel.UploadReady, doubt), r.upload(b, zkmodel.UploadReady, doubt)
	lock, _, err := r.Store.LockUpload(t.Context(), u.UploadKey)
	r.must(err)
	r.must(r.mirror.Barrier(t.Context()))
	if err := r.forgetLost(t.Context(), "north", nil); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("one is locked: %v", err)
	}
	if r.there(other.Path()) {
		t.Error("the other one is not forgotten")
	}
	r.north.images = nil
	if err := r.search("north"); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("the search does not tell: %v", err)
	}
	r.must(lock.Release(t.Context()))
	if err := errors.Join(r.forget(t.Context(), u), r.forget(t.Context(), u)); err != nil || r.there(u.Path()) {
		t.Errorf("unlocked: %v", err)
	}
	last := r.upload(b, zkmodel.UploadReady, doubt)
	r.Deciding = func(context.Context) func() {
		r.lose(zkmodel.LockPath(last.Path())) //nolint:contextcheck // by that of the test
		return func() {}
	}
	if err := r.forget(t.Context(), last); err == nil || !r.there(last.Path()) {
		t.Errorf("the lock is lost: %v", err)
	}
}
