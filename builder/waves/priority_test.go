package waves_test

import (
	"slices"
	"testing"

	"poolkeeper/builder/waves"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: a wave that asks for builds while one of a higher priority waits for a builder;
// one that waits for a higher one that waits for something else, or is over; a wave of no
// priority that is taken for a low one.
func TestHigherWavesComeFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c", "d", "e", "f")
	ctx := t.Context()
	create := func(id string, priority wave.Priority, images ...string) {
		t.Helper()
		w := &wave.Wave{ID: id, Priority: priority, MaxParallel: 1, Until: wave.UntilUploaded, MaxFailures: "100%"}
		var jobs []wave.Job
		for _, image := range images {
			jobs = append(jobs, waves.Job(s.config, image))
		}
		if made, err := s.store.Create(ctx, w, jobs); err != nil || !made {
			t.Fatalf("create %s: %v, %v", id, made, err)
		}
	}
	noteOf := func(id string) string {
		e, err := s.store.Wave(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return e.Status.Note
	}
	if err := s.models.PauseImage(ctx, "e"); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"a", "b", "c", "d", "f"} {
		s.stop[image] = true
	}
	release := func(images ...string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, image := range images {
			delete(s.stop, image)
		}
	}
	s.driver("one", nil)
	s.driver("two", nil)
	s.builder("x")
	create("paused", wave.High, "e")
	create("normal", "", "c", "d")
	s.eventually("c is asked for", func() bool { return s.in("normal", wave.Processing, "c") })
	create("low", wave.Low, "a", "b")
	create("high", wave.High, "f")
	s.eventually("low waits", func() bool { return slices.Contains([]string{behind("normal"), behind("high")}, noteOf("low")) })
	s.eventually("high waits", func() bool { e, err := s.store.Wave(ctx, "high"); return err == nil && e.Status.Waits })
	release("c")
	s.eventually("normal waits for high, when c is built", func() bool { return s.in("normal", wave.Completed, "c") && noteOf("normal") == behind("high") })
	if !s.in("normal", wave.Pending, "d") || !s.in("low", wave.Pending, "a", "b") {
		t.Errorf("asked for while a higher one waits: %v, %v", s.states("normal"), s.states("low"))
	}
	release("f")
	if r := s.result("high"); r.State != wave.Completed {
		t.Errorf("high: %+v", r)
	}
	s.eventually("d is asked for", func() bool { return s.in("normal", wave.Processing, "d") })
	for _, image := range []string{"a", "b"} {
		if _, asked, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath(image)); asked || err != nil {
			t.Errorf("%s is asked for: %v", image, err)
		}
	}
	release("a", "b", "d")
	for _, id := range []string{"normal", "low"} {
		if r := s.result(id); r.State != wave.Completed || r.Counts[wave.Completed] != 2 {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if !s.in("paused", wave.Pending, "e") {
		t.Errorf("paused: %v", s.states("paused"))
	}
}

func behind(id string) string { return "waits for wave " + id + ", which has a higher priority" }
