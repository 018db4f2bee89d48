package waves_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/builder/waves"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
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

// Mistakes: a priority that is changed and not heeded, by the wave itself or by those beside it; a
// job that was put first and comes by its rank; a change that asks for more builds than may be.
func TestPrioritiesAreChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c", "d", "e")
	ctx := t.Context()
	for _, image := range []string{"a", "b", "c", "d", "e"} {
		s.stop[image] = true
	}
	free := func(image string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stop, image)
	}
	create := func(id string, priority wave.Priority, images ...string) {
		t.Helper()
		var jobs []wave.Job
		for _, image := range images {
			jobs = append(jobs, waves.Job(s.config, image))
		}
		made, err := s.store.Create(ctx, &wave.Wave{ID: id, Priority: priority, MaxParallel: 1, Until: wave.UntilBuilt, MaxFailures: "0"}, jobs)
		if err != nil || !made {
			t.Fatalf("create %s: %v, %v", id, made, err)
		}
	}
	give := func(id, image string, priority wave.Priority) {
		t.Helper()
		if err := s.store.Prioritize(ctx, id, image, wave.Word{By: "ann", Priority: priority}); err != nil {
			t.Fatal(err)
		}
	}
	noteOf := func(id string) string {
		e, err := s.store.Wave(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return e.Status.Note
	}
	s.driver("one", nil)
	s.driver("two", nil)
	s.builder("x")
	create("one", wave.Low, "a", "b", "c")
	s.eventually("a is asked for", func() bool { return s.in("one", wave.Processing, "a") })
	create("two", "", "d", "e")
	s.eventually("one waits for two", func() bool { return s.in("two", wave.Processing, "d") && noteOf("one") == behind("two") })
	give("one", "c", wave.Low)
	give("one", "c", wave.High)
	give("one", "", wave.High)
	s.eventually("two waits for one", func() bool { return noteOf("two") == behind("one") && noteOf("one") == "" })
	free("a")
	s.eventually("c comes before b", func() bool { return s.in("one", wave.Processing, "c") && s.in("one", wave.Pending, "b") })
	free("d")
	s.eventually("d is built", func() bool { return s.in("two", wave.Completed, "d") })
	if !s.in("two", wave.Pending, "e") {
		t.Errorf("asked for while a higher one waits: %v", s.states("two"))
	}
	give("one", "", wave.Low)
	s.eventually("e is asked for", func() bool { return s.in("two", wave.Processing, "e") })
	for _, image := range []string{"b", "c", "e"} {
		free(image)
	}
	for id, jobs := range map[string]int{"one": 3, "two": 2} {
		if r := s.result(id); r.State != wave.Completed || r.Counts[wave.Completed] != jobs {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if err := s.store.Prioritize(ctx, "three", "", wave.Word{Priority: wave.High}); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("a wave that is not there: %v", err)
	}
}

func behind(id string) string { return "waits for wave " + id + ", which has a higher priority" }

// Mistakes: a wave that holds those of a lower priority back for ever, since all builders of its
// images are paused, or are busy with something else, or nobody drives it; a paused builder
// that takes the room of one that builds; a job that does not go on when its builder does.
func TestWaitForAHigherWaveEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "g")
	s.config.DiskImages[2].HostLabels = []string{"gpu"} // which driver one has not
	s.stop["g"] = true
	ctx, ses := t.Context(), s.models.Session()
	for _, folder := range []string{zkmodel.ComponentsRoot + "/builder", wave.HostsPath} {
		if err := ses.EnsurePath(ctx, folder); err != nil {
			t.Fatal(err)
		}
	}
	component, err := ses.Create(ctx, zkmodel.ComponentsRoot+"/builder/gpu", nil, recipe.Ephemeral|recipe.Sequential)
	if err != nil {
		t.Fatal(err)
	}
	gpu := func(state, reason string) {
		t.Helper()
		data, err := (&zkmodel.Component{Hostname: "gpu", Kind: zkmodel.KindBuilder, State: state, Reason: reason}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ses.Set(ctx, component, data, recipe.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	gpu(zkmodel.ComponentRunning, "")
	host := wave.Host{Name: "gpu.example", Images: []string{"g"}, Workers: 1, Free: -1, Factor: 2}
	if _, err := ses.Create(ctx, wave.HostsPath+"/gpu.example-", host.Encode(), recipe.Ephemeral|recipe.Sequential); err != nil {
		t.Fatal(err)
	}
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
	status := func(id string) wave.Status {
		t.Helper()
		e, err := s.store.Wave(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return e.Status
	}
	s.driver("one", nil)
	create("w", wave.High, "g", "a")
	s.eventually("g is asked for", func() bool { return s.in("w", wave.Processing, "g") && status("w").Waits })
	create("low", wave.Low, "b")
	s.eventually("low waits", func() bool { return status("low").Note == behind("w") })

	// g's builder has other work for long.
	s.later(wave.GiveUp)
	s.eventually("low waits no more", func() bool {
		return s.in("low", wave.Processing, "b") && strings.HasPrefix(status("w").Note, "no build of it has begun or ended for 30m0s")
	})
	s.builder("x")
	if r := s.result("low"); r.State != wave.Completed {
		t.Errorf("low: %+v", r)
	}

	// It is paused: a takes its place in the wave, which has room for one.
	gpu(zkmodel.ComponentPaused, "paused by ann")
	s.eventually("a is built", func() bool { return s.in("w", wave.Completed, "a") && s.in("w", wave.Pending, "g") })
	if note := s.note("g"); note != "waits for a builder that builds at the moment: gpu.example: paused by ann" || status("w").Waits {
		t.Errorf("g: %q, the wave %+v", note, status("w"))
	}
	if _, asked, err := ses.Exists(ctx, zkmodel.RequestBuildPath("g")); asked || err != nil {
		t.Errorf("g is asked for: %v", err)
	}
	create("low2", wave.Low, "b")
	if r := s.result("low2"); r.State != wave.Completed {
		t.Errorf("low2: %+v", r)
	}
	gpu(zkmodel.ComponentRunning, "")
	s.mu.Lock()
	clear(s.stop)
	s.mu.Unlock()
	if r := s.result("w"); r.State != wave.Completed || r.Counts[wave.Completed] != 2 {
		t.Errorf("w: %+v", r)
	}
}

// Mistake: a wave that nobody drives, or an older builder that is stuck, which others wait for.
func TestWavesThatNobodyDrivesHoldNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a")
	ctx := t.Context()
	waiting := recipe.OpSet(wave.Root+"/status/stuck", []byte(`{"state":"processing","waits":true}`), 0)
	for id, more := range map[string][]recipe.Op{"pending": nil, "stuck": {waiting}} {
		w := &wave.Wave{ID: id, Priority: wave.High, MaxFailures: "0"}
		if made, err := s.store.Create(ctx, w, []wave.Job{{Image: "a"}}, more...); err != nil || !made {
			t.Fatalf("create %s: %v, %v", id, made, err)
		}
	}
	for id, bound := range map[string]time.Duration{"pending": wave.GiveUp, "stuck": wave.Standstill} {
		for wait, want := range map[time.Duration]bool{time.Minute: true, bound - time.Minute: true, bound + time.Minute: false} {
			if waits, over, err := s.store.Waits(ctx, id, time.Now().Add(wait)); waits != want || over || err != nil {
				t.Errorf("%s is waited for after %s: %v, over %v, %v", id, wait, waits, over, err)
			}
		}
	}
}
