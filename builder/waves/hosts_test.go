package waves_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// note is that of a job of wave w; "" without one.
func (s *site) note(image string) string {
	s.t.Helper()
	rows, _, err := s.store.Rows(s.t.Context(), "w", wave.States(), 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Image == image {
			return r.Note
		}
	}
	return ""
}

// Mistakes: builds that are asked for which no builder has the space for; a job that never
// goes on once there is space; space of one builder that is taken for that of all; records
// of builders that stay when no wave is there; estimates that are told nowhere.
func TestAdmissionBySpace(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	s := newSite(t, "a", "b", "c")
	s.size = gib
	s.free = map[string]int64{"one": 100 * gib, "two": gib}
	s.driver("one", nil)
	s.driver("two", nil)
	s.builder("x")
	s.create("first")
	if r := s.result("first"); r.State != wave.Completed || r.Took.Bytes != 3*gib || r.Estimate.Unknown != 3 {
		t.Errorf("first: %+v, took %+v, estimate %+v", r, r.Took, r.Estimate)
	}
	s.eventually("no builder tells of itself", func() bool { hosts, err := s.store.Hosts(t.Context()); return err == nil && len(hosts) == 0 })
	// a has room at two, of which b takes one away.
	s.mu.Lock()
	s.free = map[string]int64{"one": gib, "two": 5 * gib / 2}
	s.stop["a"], s.stop["b"], s.stop["c"] = true, true, true
	s.mu.Unlock()
	s.create("w")
	s.eventually("a is asked for, and the others wait for space", func() bool {
		return s.in("w", wave.Processing, "a") && strings.HasPrefix(s.note("b"), "the disk is full on all builders: two has the most, 2.5 GiB") &&
			strings.HasSuffix(s.note("c"), "about 2.0 GiB are needed")
	})
	for _, image := range []string{"b", "c"} {
		if _, asked, err := s.models.Session().Exists(t.Context(), zkmodel.RequestBuildPath(image)); asked || err != nil {
			t.Errorf("%s is asked for: %v", image, err)
		}
	}
	s.mu.Lock()
	s.free["one"] = 50 * gib
	clear(s.stop)
	s.mu.Unlock()
	s.later(time.Minute)
	r := s.result("w")
	if r.State != wave.Completed || r.Estimate.Bytes != 3*gib || r.Estimate.Workers != 3 || r.Jobs[1].Estimate == nil || r.Jobs[1].Estimate.Bytes != gib {
		t.Errorf("report %+v, estimate %+v", r, r.Estimate)
	}
}

// Mistakes: a job that waits for ever for a builder that there is not, or whose files are on
// one that is gone; one that is given up at once.
func TestBuildersThatAreGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	whole := s.config
	narrow := *whole
	narrow.DiskImages = narrow.DiskImages[:1]
	s.stop["a"], s.stop["b"] = true, true
	s.create("w", func(w *wave.Wave) { w.MaxFailures = "100%" })
	s.config = &narrow
	s.driver("one", nil)
	s.driver("two", nil)
	s.eventually("it is told", func() bool {
		return strings.HasPrefix(s.note("b"), "no builder that runs builds the image: it fails, unless one comes, at 20")
	})
	// a is built by a builder that is gone before it has sent anything.
	ctx := t.Context()
	lock, err := s.models.LockBuilds(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: "a", Builder: "gone"}
	if err := s.models.CreateBuild(ctx, lock, b); err != nil {
		t.Fatal(err)
	}
	if err := zkmodel.Move(b, zkmodel.BuildReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := s.models.SaveBuild(ctx, lock, b); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	s.eventually("it is told of a", func() bool {
		return strings.Contains(s.note("a"), "gone, which has the files, is not there: it is built again")
	})
	if !s.in("w", wave.Processing, "a", "b") {
		t.Errorf("given up at once: %v", s.states("w"))
	}
	s.mu.Lock()
	clear(s.stop)
	s.mu.Unlock()
	s.later(wave.GiveUp)
	s.builder("x")
	r := s.result("w")
	if r.State != wave.Failed || len(r.Jobs) != 2 {
		t.Fatalf("report %+v", r)
	}
	if a := r.Jobs[0]; a.State != wave.Completed || a.Build != "0000000002" || a.Tries != 1 {
		t.Errorf("a: %+v", a)
	}
	if b := r.Jobs[1]; b.State != wave.Failed || b.Reason != "no builder that runs builds the image, for 30m0s" {
		t.Errorf("b: %+v", b)
	}
	if _, asked, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath("b")); asked || err != nil {
		t.Errorf("b is still asked for: %v", err)
	}
}

// Mistake: an image that the host labels keep from this builder counts as built here: where
// another builder does not tell what it builds, the job has no note, and holds waves of a
// lower priority for ever.
func TestImageOfOtherHostsHoldsNoLowerWave(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	s.config.DiskImages[1].HostLabels = []string{"gpu"}
	ctx, ses := t.Context(), s.models.Session()
	if err := ses.EnsurePath(ctx, zkmodel.ComponentsRoot+"/builder"); err != nil {
		t.Fatal(err)
	}
	old := []byte(`{"hostname":"old","kind":"builder","state":"running"}`) // tells nothing
	if _, err := ses.Create(ctx, zkmodel.ComponentsRoot+"/builder/old-", old, recipe.Ephemeral|recipe.Sequential); err != nil {
		t.Fatal(err)
	}
	s.stop["b"] = true
	s.driver("one", nil)
	s.builder("x")
	s.create("high", func(w *wave.Wave) { w.Priority = wave.High })
	s.eventually("the job says what it waits for", func() bool {
		rows, _, err := s.store.Rows(ctx, "high", []wave.State{wave.Processing}, 10)
		return err == nil && len(rows) == 1 && rows[0].Image == "b" && strings.HasPrefix(rows[0].Note, "waits for a builder")
	})
	s.eventually("the wave holds no other", func() bool {
		e, err := s.store.Wave(ctx, "high")
		return err == nil && !e.Status.Waits
	})
}
