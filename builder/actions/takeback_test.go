package actions

import (
	"context"
	"errors"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// sent is an upload whose image is in the cloud, and whose record does not say so yet; with the write that is to.
func (r *room) sent() (s *sending, id string, write func() error) {
	r.t.Helper()
	b := r.build()
	lock, err := r.Store.LockUploads(r.t.Context(), b.Image, b.ID, "north")
	r.must(err)
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: "north"}, Builder: "here"}
	r.must(r.Store.CreateUpload(r.t.Context(), lock, u))
	r.north.images = append(r.north.images, image("of "+u.ID, u.UploadKey))
	s = &sending{Worker: r.Worker, lock: lock, cloud: lent{r.north, r.north}, record: u, build: b}
	u.ExternalID = zkmodel.TextValue("of " + u.ID)
	ready := *u
	r.must(zkmodel.Move(&ready, zkmodel.UploadReady, zkmodel.ByUs, 5))
	return s, "of " + u.ID, func() error { return r.Store.SaveUpload(context.WithoutCancel(r.t.Context()), lock, &ready) }
}

// A builder that is to stop while it writes that an image is ready gives the write up, and takes the image back.
// Mistake: the write comes after all, when the image goes or has gone, so that nodes are to boot from nothing.
func TestImageIsTakenBackBeforeItIsReady(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	s, id, write := r.sent()
	came := error(nil)
	r.north.gone = func() { came = write() }
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := s.takeBack(stopped, id); err != nil {
		t.Fatal(err)
	}
	r.north.holds(t)
	if !errors.Is(came, recipe.ErrVersion) {
		t.Errorf("the record says ready, and the image has gone: %v", came)
	}
	if u, err := r.Store.Upload(t.Context(), s.record.UploadKey); err != nil || u.State != zkmodel.UploadUploading || !u.ExternalID.IsNull() {
		t.Errorf("left is %s, %q: %v", u.State, u.ExternalID.Text(), err)
	}
}

// Mistake: an image is taken back whose record names it, or that others see to by now.
func TestImageThatIsKnownIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(r *room, s *sending, write func() error)
		want   error
	}{
		"the write came": {func(r *room, _ *sending, write func() error) { r.must(write()) }, nil},
		"it is tried": {func(r *room, s *sending, _ func() error) {
			u := *s.record
			r.must(r.Store.BeginValidation(r.t.Context(), s.lock, &u, &zkmodel.Validation{BuildCzxid: s.build.Stat.Czxid, ExternalID: u.ExternalID.Text()}))
		}, nil},
		"a person has spoilt it": {func(r *room, s *sending, _ func() error) {
			_, err := r.Store.Session().Set(r.t.Context(), s.record.Path(), []byte("{"), recipe.AnyVersion)
			r.must(err)
		}, zkmodel.ErrUnproven},
		"the lock is lost": {func(r *room, s *sending, _ func() error) {
			r.lose(zkmodel.LockPath(zkmodel.UploadsPath("img", s.build.ID, "north")))
		}, recipe.ErrFenceLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			s, id, write := r.sent()
			c.before(r, s, write)
			if err := s.takeBack(t.Context(), id); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			r.north.holds(t, id)
		})
	}
}
