package waves_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel/wave"
)

// page loads the configuration that docs/waves.md shows.
func page(t *testing.T) []configs.Wave {
	t.Helper()
	text, err := os.ReadFile("../../docs/waves.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(string(text), "```yaml\n")
	if len(shown) != 2 {
		t.Fatalf("docs/waves.md shows %d configurations, and this test uses one", len(shown)-1)
	}
	block, _, _ := strings.Cut(shown[1], "```\n")
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	rest := "zookeeper-servers: [{host: zk}]\ndiskimages: [{name: debian-12, formats: [raw]}, {name: debian-13, formats: [raw]}]\n"
	if err := os.WriteFile(file, []byte(rest+block), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Waves
}

// Mistakes: a due time at which two builders make a wave each, or that comes again after a
// restart; times that were missed and are caught up with one by one; a wave that begins
// because its schedule is new. The configuration is that of docs/waves.md.
func TestScheduleOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, "debian-12", "debian-13", "fedora")
	s.config.Waves = page(t)
	stops := []func(){s.driver("one", nil), s.driver("two", nil)}
	s.builder("x")
	ctx := t.Context()
	waves := func() []*wave.Entry {
		list, err := s.store.Waves(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	known := func() bool {
		for _, w := range s.config.Waves {
			if _, there, err := s.models.Session().Exists(ctx, wave.Root+"/schedules/"+w.Name); err != nil || !there {
				return false
			}
		}
		return true
	}
	s.eventually("the schedules are known", known)
	if n := len(waves()); n != 0 {
		t.Errorf("%d waves before any is due", n)
	}
	s.later(15 * 24 * time.Hour) // weekly, twice missed
	s.eventually("one is due", func() bool { return len(waves()) > 0 })
	first := waves()[0]
	if !strings.HasPrefix(first.ID, "security-") || first.Schedule != "security" || first.Jobs != 2 {
		t.Errorf("wave %+v", first.Wave)
	}
	if r := s.result(first.ID); r.State != wave.Completed || len(r.Jobs) != 2 {
		t.Errorf("report %+v", r)
	}
	for _, stop := range stops {
		stop()
	}
	s.all = nil
	s.driver("three", nil)
	s.driver("four", nil)
	s.later(0)
	s.create("w") // which is driven after their first look at the schedules, or beside it
	s.result("w")
	if n := len(waves()); n != 2 {
		t.Errorf("%d waves after a restart", n)
	}
	s.later(7 * 24 * time.Hour)
	s.eventually("another is due", func() bool { return len(waves()) == 3 })
	s.later(time.Hour)
	s.create("v")
	s.result("v")
	if n := len(waves()); n != 4 {
		t.Errorf("%d waves", n)
	}
}

// Mistakes: waves that stay for ever, or go while they are under way or waited for.
func TestOldWavesGo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	s.driver("one", nil)
	s.builder("x")
	for _, id := range []string{"old", "waited"} {
		s.create(id)
		s.result(id)
	}
	ctx := t.Context()
	if _, err := s.models.Session().Create(ctx, wave.Root+"/waiters/waited/w-1", nil, 1); err != nil { // ephemeral
		t.Fatal(err)
	}
	s.later(15 * 24 * time.Hour)
	s.mu.Lock()
	s.stop["a"], s.stop["b"] = true, true
	s.mu.Unlock()
	s.create("new")
	s.create("over", func(w *wave.Wave) { w.Until = wave.UntilBuilt })
	if err := s.store.Set(ctx, "over", wave.MarkCancel, wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the old one is gone", func() bool {
		list, err := s.store.Waves(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		return strings.Join(ids, " ") == "waited new over"
	})
}

// Mistake: a due time of which the wave can never be made, and that is tried every second for
// ever, so that no later one comes.
func TestScheduleOfATooLargeWaveIsSkipped(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a")
	s.config.Waves = []configs.Wave{{Name: "daily", Schedule: "0 3 * * *", All: true, MaxFailures: "0", Reason: strings.Repeat("x", 2<<20)}}
	s.driver("one", nil)
	ctx := t.Context()
	last := func() string {
		data, _, _ := s.models.Session().Get(ctx, wave.Root+"/schedules/daily") //nolint:dogsled // "" without one
		return string(data)
	}
	s.eventually("the schedule is known", func() bool { return last() != "" })
	first := last()
	s.later(25 * time.Hour)
	s.eventually("the time is passed over", func() bool { return last() != first })
	if n := len(s.waves()); n != 0 {
		t.Errorf("%d waves", n)
	}
	s.mu.Lock()
	shorter := *s.config
	shorter.Waves = []configs.Wave{{Name: "daily", Schedule: "0 3 * * *", All: true, MaxFailures: "0", Until: "built"}}
	s.config = &shorter
	s.mu.Unlock()
	s.later(24 * time.Hour)
	s.eventually("the next is made", func() bool { return len(s.waves()) == 1 })
}
