package waves_test

import (
	"slices"
	"strings"
	"testing"

	"poolkeeper/builder/waves"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: a request of image-build that is served while all waves are held, whether it was made
// before that or meanwhile; one that is lost, or told to be withdrawn, or to have made way for a
// later one, once they are released, also where who drives it dies between; a build under way
// that is touched; a person's request that is taken away; one that image-build-cancel does not
// find while it is held, or that is made all the same once waves are released.
func TestHoldingAllHoldsRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c", "d", "e")
	ctx := t.Context()
	asked := func(image string) bool {
		t.Helper()
		_, there, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath(image))
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	follow := func(id string) *wave.Wave {
		return &wave.Wave{ID: id, Until: wave.UntilUploaded, MaxFailures: "0", Follow: true}
	}
	note := func(id string) string {
		rows, _, err := s.store.Rows(ctx, id, wave.States(), 10)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v, %v", id, rows, err)
		}
		return rows[0].Note
	}
	stop := s.driver("one", nil)
	// That of d is being served.
	lock, err := s.models.LockBuilds(ctx, "d")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"a", "d", "e"} {
		if err := s.store.Ask(ctx, follow("ask-"+image), waves.Job(s.config, image)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.models.CreateBuild(ctx, lock, &zkmodel.Build{Image: "d", Builder: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"a", "d", "e"} {
		s.eventually(image+" is followed", func() bool { return s.in("ask-"+image, wave.Processing, image) })
	}
	if err := s.models.RequestBuild(ctx, "c"); err != nil { // a person's, without a wave
		t.Fatal(err)
	}
	if err := s.store.Hold(ctx, wave.Target{}, wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	const held = "all waves are held by ann"
	s.eventually("the request for a is taken back", func() bool { return !asked("a") && note("ask-a") == held })
	later := follow("ask-b")
	later.Unasked = true
	if made, err := s.store.Create(ctx, later, []wave.Job{waves.Job(s.config, "b")}); err != nil || !made {
		t.Fatal(made, err)
	}
	s.eventually("b waits", func() bool { return note("ask-b") == held })
	s.eventually("the request for e is taken back", func() bool { return !asked("e") })
	ann := operate.New(s.models, "ann")
	if done, err := ann.CancelBuild(ctx, "e"); err != nil || !slices.Equal(done.Waves, []string{"ask-e"}) {
		t.Errorf("cancelled: %+v, %v", done, err)
	}
	if done, err := ann.CancelBuild(ctx, "e"); err == nil || !strings.Contains(err.Error(), "nobody asks for a build of it") {
		t.Errorf("cancelled twice: %+v, %v", done, err)
	}
	for image, want := range map[string][]string{"a": {"ask-a"}, "b": {"ask-b"}, "c": nil, "d": nil, "e": nil} {
		if got, err := s.store.Unasked(ctx, image); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", image, got, err, want)
		}
	}
	if asked("b") || !asked("c") || !asked("d") {
		t.Errorf("asked for: b %v, c %v, d %v; want c and d", asked("b"), asked("c"), asked("d"))
	}
	stop()
	s.driver("two", nil)
	for _, id := range []string{"ask-a", "ask-b"} { // two goes on, and changes nothing
		s.eventually(id+" has another driver", func() bool { e, err := s.store.Wave(ctx, id); return err == nil && e.Status.Driver == "two" })
		if n := note(id); n != held {
			t.Errorf("%s: %q", id, n)
		}
	}
	if err := s.store.Release(ctx, wave.Target{}, wave.Word{By: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	s.eventually("both are asked for", func() bool { return asked("a") && asked("b") })
	if r := s.result("ask-e"); r.State != wave.Cancelled || asked("e") {
		t.Errorf("e: %+v", r)
	}
	// As often as is wanted.
	if err := s.store.Hold(ctx, wave.Target{}, wave.Word{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	s.eventually("both are taken back", func() bool { return !asked("a") && !asked("b") && strings.HasSuffix(note("ask-a"), "by bob") })
	if err := s.store.Release(ctx, wave.Target{}, wave.Word{By: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	s.eventually("both are asked for again", func() bool { return asked("a") && asked("b") })
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	s.builder("x")
	for _, id := range []string{"ask-a", "ask-b"} {
		if r := s.result(id); r.State != wave.Completed || r.Jobs[0].Build != "0000000001" {
			t.Errorf("%s: %+v", id, r)
		}
	}
}
