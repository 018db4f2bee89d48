package waves_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/waves"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/source"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: an image that is built twice or never, more builds that are asked for at once
// than may, a flag that stays, a job that is over before its uploads are.
func TestWaveBuildsAndUploadsAll(t *testing.T) {
	t.Parallel()
	images := []string{"a", "b", "c", "d", "e", "f", "g"}
	s := newSite(t, images...)
	s.driver("one", nil)
	s.driver("two", nil)
	s.create("w", func(w *wave.Wave) { w.MaxParallel = 2 })
	s.eventually("two are asked for", func() bool { return s.in("w", wave.Processing, "a", "b") })
	s.builder("one")
	s.builder("two")
	r := s.result("w")
	if r.State != wave.Completed || r.Counts[wave.Completed] != len(images) || r.Began == nil || r.Ended == nil {
		t.Errorf("report %+v", r)
	}
	for _, job := range r.Jobs {
		if job.Build != "0000000001" || job.Uploads["north"] == "" || job.Uploads["south"] == "" {
			t.Errorf("job %+v", job)
		}
	}
	if !s.in("w", wave.Completed, images...) {
		t.Errorf("the index has %v", s.states("w"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked > 2 {
		t.Errorf("%d builds were asked for at once", s.asked)
	}
	for _, image := range images {
		if _, asked, err := s.models.Session().Exists(t.Context(), zkmodel.RequestBuildPath(image)); asked || err != nil || s.builds[image] != 1 {
			t.Errorf("%s: asked for %v, built %d times: %v", image, asked, s.builds[image], err)
		}
	}
}

// Mistakes: a znode that is made, or watched beyond the one that is not there, where there
// is no wave.
func TestNothingIsWrittenWithoutAWave(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	s.tap = tap
	s.driver("one", nil)
	s.builder("one")
	for _, image := range []string{"a", "b"} {
		if err := s.models.RequestBuild(t.Context(), image); err != nil {
			t.Fatal(err)
		}
		s.eventually(image+" is built", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.builds[image] == 1 })
	}
	// Two reads of a node that is not there, when the session begins, and no more.
	if n := tap.Naming(wave.Root); n > 3 {
		t.Errorf("%d requests about waves", n)
	}
	if n := tap.Naming(hook.Root); n > 3 { // the same, whether anything is left
		t.Errorf("%d requests about hooks, where there are none", n)
	}
	if n := tap.Naming(source.Root); n != 0 {
		t.Errorf("%d requests about sources", n)
	}
	names, err := s.models.Session().Children(t.Context(), "/")
	if err != nil || slices.Contains(names, "poolkeeper") {
		t.Errorf("there are %q: %v", names, err)
	}
}

// Mistakes: a wave that is lost when who drives it dies, at whatever moment; one that has
// an image built again then, or ends twice.
func TestKilledDriverLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, moment := range waves.Moments() {
		for _, nth := range []int{1, 3} {
			t.Run(strings.ReplaceAll(string(moment), " ", "-")+"-"+strconv.Itoa(nth), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, "a", "b", "c")
				var seen atomic.Int32
				killed := make(chan struct{})
				s.driver("one", func(c *recipe.Client, m waves.Moment) {
					if m == moment && seen.Add(1) == int32(nth) {
						c.Close()
						close(killed)
					}
				})
				s.create("w", func(w *wave.Wave) { w.MaxParallel = 1 })
				s.builder("x")
				s.builder("y")
				if nth == 1 {
					<-killed
				}
				s.driver("two", nil)
				if r := s.result("w"); r.State != wave.Completed || len(r.Jobs) != 3 || r.Counts[wave.Completed] != 3 {
					t.Errorf("report %+v", r)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, image := range []string{"a", "b", "c"} {
					if s.builds[image] != 1 {
						t.Errorf("%s was built %d times", image, s.builds[image])
					}
				}
			})
		}
	}
}

// Mistakes: a rest that goes on after too many failures, one that nobody can let go on, a
// failed job that is never tried again, or is tried without end.
func TestFailuresHoldTheRest(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c", "d", "e")
	s.fails["a"], s.fails["b"] = 100, 1
	s.retry = plan.Backoff{First: 1, Max: 1} // or a waits until there is no rest to hold
	s.driver("one", nil)
	s.builder("x")
	s.create("w", func(w *wave.Wave) { w.MaxParallel, w.MaxFailures = 1, "0" })
	ctx := t.Context()
	s.eventually("the rest is held", func() bool {
		e, err := s.store.Wave(ctx, "w")
		_, held := e.Marks[wave.MarkHold]
		return err == nil && held && s.in("w", wave.Failed, "a") && s.in("w", wave.Pending) && s.in("w", wave.Processing) //nolint:contextcheck // the test's
	})
	if err := s.store.Delete(ctx, "w", wave.Word{}); !errors.Is(err, wave.ErrNotOver) {
		t.Errorf("delete a wave under way: %v", err)
	}
	if err := s.store.Release(ctx, wave.Target{ID: "w"}, wave.Word{}, nil); err != nil {
		t.Fatal(err)
	}
	r := s.result("w")
	if r.State != wave.Failed || r.Counts[wave.Failed] != 1 || r.Counts[wave.Completed] != 4 {
		t.Errorf("report %+v", r)
	}
	if a, b := r.Jobs[0], r.Jobs[1]; a.Tries != wave.MaxTries || !strings.Contains(a.Reason, "no space") || b.State != wave.Completed {
		t.Errorf("jobs %+v, %+v", a, b)
	}
	// A builder that does not wait tries more often than it is asked for, until its driver has
	// seen what failed; nobody asks it any longer.
	if _, asked, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath("a")); err != nil || asked {
		t.Errorf("a is asked for still: %t, %v", asked, err)
	}
	s.mu.Lock()
	if s.builds["a"] < wave.MaxTries {
		t.Errorf("a was tried %d times", s.builds["a"])
	}
	s.fails["a"] = 0
	s.mu.Unlock()
	if err := s.store.Retry(ctx, "w", "", wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is completed", func() bool {
		e, err := s.store.Wave(ctx, "w")
		return err == nil && e.Status.State == wave.Completed && len(e.Marks) == 0
	})
	r = s.result("w")
	if r.State != wave.Completed || r.Counts[wave.Completed] != 5 || r.Jobs[0].Tries != 0 {
		t.Errorf("after the retry: %+v", r)
	}
	// The report of what failed is kept.
	earlier := r.Earlier
	if earlier == nil || earlier.State != wave.Failed || len(earlier.Jobs) != 1 || earlier.Jobs[0].Image != "a" || earlier.Jobs[0].Tries != wave.MaxTries {
		t.Errorf("from before the retry: %+v", earlier)
	}
	s.eventually("it is removed", func() bool { return s.store.Delete(ctx, "w", wave.Word{}) == nil })
	names, err := s.models.Session().Children(ctx, wave.Root+"/jobs")
	if err != nil || len(names) != 0 {
		t.Errorf("left of jobs: %q, %v", names, err)
	}
}

// Mistakes: a build that began before the wave that completes a job; one of a Nodepool
// builder, or of a person's flag, that does not; a plain flag that goes with a wave.
func TestAnyBuilderCompletesAJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c")
	s.old = true
	ctx := t.Context()
	lock, err := s.models.LockBuilds(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	before := &zkmodel.Build{Image: "a", Builder: "np"}
	if err := s.models.CreateBuild(ctx, lock, before); err != nil {
		t.Fatal(err)
	}
	s.driver("one", nil)
	if err := s.models.RequestBuild(ctx, "b"); err != nil { // a person's
		t.Fatal(err)
	}
	s.create("w")
	s.eventually("all are asked for", func() bool { return s.in("w", wave.Processing, "a", "b", "c") })
	err = zkmodel.Move(before, zkmodel.BuildReady, zkmodel.ByOther, 1)
	if err := errors.Join(err, s.models.SaveBuild(ctx, lock, before), lock.Release(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.config.Providers {
		if err := s.upload(ctx, s.models, before, p.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.store.Set(ctx, "w", wave.MarkCancel.Of("b"), wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Set(ctx, "w", wave.MarkCancel.Of("c"), wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.eventually("two are cancelled", func() bool { return s.in("w", wave.Cancelled, "b", "c") })
	for image, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if _, asked, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath(image)); asked != want || err != nil {
			t.Errorf("%s is asked for: %v (%v)", image, asked, err)
		}
	}
	if !s.in("w", wave.Processing, "a") {
		t.Errorf("a build that began before completes the job: %v", s.states("w"))
	}
	s.builder("np")
	r := s.result("w")
	if r.State != wave.Completed || r.Jobs[0].Build != "0000000002" || r.Jobs[0].Builder != "np" || r.Counts[wave.Cancelled] != 2 {
		t.Errorf("report %+v", r)
	}
}

// Mistakes: a request of image-build whose flag changes with its job; one that is told
// to be over when it is not; an index for one job; a wave of that id with other images that
// is taken for the same.
func TestJobsFollowRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c")
	ctx := t.Context()
	ask := func(id, image string) {
		t.Helper()
		w := &wave.Wave{ID: id, Until: wave.UntilUploaded, MaxFailures: "0", Follow: true}
		if err := s.store.Ask(ctx, w, waves.Job(s.config, image)); err != nil {
			t.Fatal(err)
		}
	}
	flagged := func(image string) bool {
		_, there, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath(image))
		return there && err == nil
	}
	s.driver("one", nil)
	s.driver("two", nil)
	s.stop["c"] = true
	ask("withdrawn", "c")
	s.eventually("c is asked for", func() bool { return s.in("withdrawn", wave.Processing, "c") })
	if err := s.models.WithdrawBuild(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if r := s.result("withdrawn"); r.State != wave.Cancelled || !strings.Contains(r.Jobs[0].Reason, "withdrawn") || r.Jobs[0].State != wave.Cancelled || flagged("c") {
		t.Errorf("withdrawn: %+v", r)
	}
	s.fails["b"] = 2
	ask("good", "a")
	ask("late", "b")
	s.builder("x")
	s.builder("y")
	for id, tries := range map[string]int{"good": 0, "late": 2} {
		if r := s.result(id); r.State != wave.Completed || r.Jobs[0].Tries > tries || len(r.Jobs[0].Uploads) != 2 {
			t.Errorf("%s: %+v", id, r)
		}
		if names, err := s.models.Session().Children(ctx, wave.Root+"/states"); err == nil && len(names) > 0 {
			t.Errorf("an index: %q", names)
		}
	}
	s.fails["b"] = 1000
	ask("never", "b")
	if r := s.result("never"); r.State != wave.Failed || r.Jobs[0].Tries != wave.MaxTries || !strings.Contains(r.Jobs[0].Reason, "no space") || !flagged("b") {
		t.Errorf("never: %+v", r)
	}
	if err := s.store.Retry(ctx, "never", "", wave.Word{}); !errors.Is(err, wave.ErrFollows) {
		t.Errorf("retried: %v", err)
	}
	if err := s.store.SameImages(ctx, "never", []wave.Job{{Image: "b"}}); err != nil {
		t.Errorf("the same images: %v", err)
	}
	if err := s.store.SameImages(ctx, "never", []wave.Job{{Image: "a"}}); !errors.Is(err, wave.ErrOtherImages) || !strings.Contains(err.Error(), "it also has b; it lacks a") {
		t.Errorf("other images: %v", err)
	}
}

// Mistakes: waves that have an image built twice when one build is enough for both; one that
// ends with who drives it, or waits for the session of who has stopped.
func TestTwoWavesShareABuild(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	stop := s.driver("one", nil)
	s.create("v")
	s.create("w")
	for _, id := range []string{"v", "w"} {
		s.eventually(id+" asks for both", func() bool { return s.in(id, wave.Processing, "a", "b") })
	}
	stop()
	s.driver("two", nil)
	s.builder("x")
	for _, id := range []string{"v", "w"} {
		if r := s.result(id); r.State != wave.Completed || r.Jobs[0].Build != "0000000001" || r.Jobs[1].Build != "0000000001" {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// Mistakes: a wave that is made anew by a command that is repeated, or changed by it; a
// listing that reads more than it shows.
func TestListing(t *testing.T) {
	t.Parallel()
	var images []string
	for n := range 1200 {
		images = append(images, fmt.Sprintf("image-%04d", n))
	}
	s := newSite(t, images...)
	s.create("w", func(w *wave.Wave) { w.MaxParallel = 3 })
	again := &wave.Wave{ID: "w", MaxFailures: "1"}
	if made, err := s.store.Create(t.Context(), again, []wave.Job{{Image: "x"}}); made || err != nil {
		t.Errorf("made again: %v, %v", made, err)
	}
	s.driver("one", nil)
	s.eventually("three are asked for", func() bool { return s.in("w", wave.Processing, images[:3]...) })
	forbidden := zktest.Forbid(t, zktest.Shared(t).Addr(), s.root, wave.Root+"/jobs/w/"+images[2])
	defer forbidden()
	rows, all, err := s.store.Rows(t.Context(), "w", []wave.State{wave.Processing, wave.Pending}, 2)
	if err != nil || all != len(images) || len(rows) != 2 || rows[0].Image != images[0] || rows[1].Rank != 1 {
		t.Errorf("%d of %d: %v, %v", len(rows), all, rows, err)
	}
	if _, _, err := s.store.Rows(t.Context(), "w", []wave.State{wave.Processing}, 3); err == nil {
		t.Error("what is shown is not read")
	}
}

// Mistakes: an end that is not told, or twice when who drives the wave dies after it.
func TestEndIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c")
	s.events, s.fails["b"] = true, 100
	s.driver("one", func(c *recipe.Client, m waves.Moment) {
		if m == waves.Ended {
			c.Close()
		}
	})
	s.builder("x")
	s.create("w", func(w *wave.Wave) { w.MaxFailures = "1" })
	s.result("w")
	s.driver("two", nil)
	s.create("v")
	s.result("v")
	ctx := t.Context()
	session := s.models.Session()
	reader := recipe.NewLog(event.Root, "").Read(session, recipe.LogPosition{})
	ended := map[string]event.Data{}
	for {
		entry, more, err := reader.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		e, err := event.Of(entry)
		if err != nil || e.Type != event.WaveEnded || ended[e.Subject] != nil {
			t.Fatalf("event %+v: %v", e, err)
		}
		ended[e.Subject] = e.Data
	}
	w := ended["wave/w"]
	if len(ended) != 2 || w["state"] != "failed" || w["completed"] != 2.0 || w["failed"] != 1.0 || !strings.Contains(fmt.Sprint(w["failures"]), "b: build") {
		t.Errorf("events %+v", ended)
	}
}

// Mistakes: a wave that cannot go on from where a driver was cut off, after whichever of its
// requests; an image that is built again then.
func TestDriverIsCutOffAfterAnyRequest(t *testing.T) {
	t.Parallel()
	for requests := 8; requests < 80; requests += 6 {
		t.Run(strconv.Itoa(requests), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "a", "b", "c")
			tap := zktest.StartTap(t, zktest.Shared(t).Addr(), requests)
			s.tap = tap
			s.create("w", func(w *wave.Wave) { w.MaxParallel = 1 })
			s.driver("one", nil)
			s.builder("x")
			s.builder("y")
			s.driver("two", nil)
			r := s.result("w")
			if r.State != wave.Completed || len(r.Jobs) != 3 || r.Counts[wave.Completed] != 3 {
				t.Errorf("report %+v", r)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, image := range []string{"a", "b", "c"} {
				if s.builds[image] != 1 {
					t.Errorf("%s was built %d times", image, s.builds[image])
				}
			}
		})
	}
}

// Mistake: requests for an image that is not built, each of which leaves a job that never
// ends; one that ends is the last, whose request stands.
func TestLaterRequestEndsTheJobOfTheFormer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a")
	s.stop["a"] = true
	s.driver("one", nil)
	for i := range 12 {
		w := &wave.Wave{ID: fmt.Sprintf("ask-%02d", i), By: "ann", Order: wave.ByPriority, Until: wave.UntilUploaded, MaxFailures: wave.DefaultMaxFailures, Follow: true}
		if err := s.store.Ask(t.Context(), w, waves.Job(s.config, "a")); err != nil {
			t.Fatal(err)
		}
	}
	active := func() (ids []string) {
		for _, e := range s.waves() {
			if e.Active() {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	s.eventually("one is left", func() bool { return slices.Equal(active(), []string{"ask-11"}) })
	s.stop["a"] = false
	s.builder("x")
	if r := s.result("ask-11"); r.State != wave.Completed {
		t.Errorf("the last: %+v", r)
	}
}

// A client writes params, the request, and the status late or never: the wave runs, or is rejected
// with the reason. Catches: a wave that no builder takes and that no command shows.
func TestWaveOfAnotherClient(t *testing.T) {
	t.Parallel()
	s := newSite(t, "debian", "fedora")
	s.driver("one", nil)
	s.builder("nb01")
	session := s.models.Session()
	write := func(folder, id, text string) {
		t.Helper()
		if err := session.EnsurePath(t.Context(), wave.Root+"/"+folder); err != nil {
			t.Fatal(err)
		}
		if _, err := session.Create(t.Context(), wave.Root+"/"+folder+"/"+id, []byte(text), recipe.Persistent); err != nil && !errors.Is(err, recipe.ErrNodeExists) {
			t.Fatal(err)
		}
	}
	for id, request := range map[string]string{
		"never": `{"order": "priority", "until": "built", "max_failures": "1", "jobs": 2}`,
		"late":  `{"order": "priority", "until": "built", "max_failures": "1", "jobs": 2}`,
		"short": `{"jobs": 5, "max_failures": "1"}`,
		"odd":   `{"jobs": 2, "max_failures": "many"}`,
	} {
		write("params", id, `[{"image": "debian"}, {"image": "fedora"}]`)
		write("requests", id, request)
	}
	write("status", "late", `{"state": "pending"}`)
	for id, want := range map[string]struct {
		state wave.State
		note  string
	}{
		"never": {wave.Completed, ""}, "late": {wave.Completed, ""},
		"short": {wave.Failed, "params has 2 images"}, "odd": {wave.Failed, "max-failures"},
	} {
		zktest.Eventually(t, func() bool {
			e, err := s.store.Wave(t.Context(), id)
			return err == nil && e.Status.State == want.state && strings.Contains(e.Status.Note, want.note)
		}, "wave %s is %s", id, want.state)
		if data, err := s.store.Queue().Result(t.Context(), id); err != nil || !strings.Contains(string(data), want.note) {
			t.Errorf("report of %s: %s, %v", id, data, err)
		}
	}
}
