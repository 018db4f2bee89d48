package waves_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/source"
	"poolkeeper/zkmodel/wave"
)

// sourced makes a site with two sources, each the content of a file, and three images.
func sourced(t *testing.T, every time.Duration) (s *site, write func(name, text string)) {
	t.Helper()
	s = newSite(t, "debian-12", "debian-13", "fedora")
	dir := t.TempDir()
	write = func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		err := os.WriteFile(file+".new", []byte(text), 0o600)
		if err == nil {
			err = os.Rename(file+".new", file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, match := range map[string]string{"elements": "debian-*", "other": "fedora"} {
		s.config.Sources = append(s.config.Sources, configs.Source{
			Wave:    configs.Wave{Name: name, Match: []string{match}, Reason: "it has changed", Order: "freshness", Until: "built", MaxFailures: "20%"},
			Command: []string{"cat", filepath.Join(dir, name)}, Every: every, Timeout: time.Minute,
		})
		write(name, "first "+name)
	}
	return s, write
}

// taken waits until it is noted that a source was taken out of the configuration, and then for
// its record to go.
func (s *site) taken(name string) {
	s.t.Helper()
	s.known(name, "is missing", func(r *source.Record) bool { return r.Gone != nil })
	s.later(source.Kept + time.Minute)
	s.eventually("what was taken out goes", func() bool { return s.unknown(name) })
}

// known waits until a source's record is as it should be.
func (s *site) known(name, what string, is func(*source.Record) bool) *source.Record {
	s.t.Helper()
	var r *source.Record
	s.eventually(name+" "+what, func() bool {
		var err error
		r, err = source.NewStore(s.models.Session()).Record(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		return is(r)
	})
	return r
}

// unknown reports whether a source has no record.
func (s *site) unknown(name string) bool {
	s.t.Helper()
	_, there, err := s.models.Session().Exists(s.t.Context(), source.Root+"/"+name)
	return err == nil && !there
}

// reload changes the configuration.
func (s *site) reload(change func(*configs.Config)) {
	s.mu.Lock()
	config := *s.config
	change(&config)
	s.config = &config
	s.mu.Unlock()
	for _, d := range s.all {
		d.Reconfigured()
	}
}

// Mistake: a source that a mistake leaves out of the configuration, and whose record goes, so
// that what has changed until the mistake is mended makes no wave; one that was taken out
// meanwhile, and stays for ever.
func TestSourcesThatAMistakeLeavesOut(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]string{"by name": "elements", "all others": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, write := sourced(t, 20*time.Millisecond)
			all := s.config.Sources
			s.driver("one", nil)
			for i := range all {
				s.known(all[i].Name, "is known", func(r *source.Record) bool { return r.Digest != "" })
			}
			probe := configs.Source{Wave: configs.Wave{Name: "probe", All: true}, Command: []string{"echo", "x"}, Every: time.Hour, Timeout: time.Minute}
			s.reload(func(c *configs.Config) {
				c.Sources = append(slices.DeleteFunc(slices.Clone(all), func(one configs.Source) bool { return one.Name == "elements" }), probe)
				c.Frozen = []configs.Frozen{{Kind: "source", Name: frozen, Why: "line 7: unknown key"}}
			})
			write("elements", "second")
			s.known("probe", "is known", func(r *source.Record) bool { return r.Digest != "" })
			s.reload(func(c *configs.Config) { c.Sources, c.Frozen = all, nil })
			s.taken("probe")
			s.known("elements", "has a wave", func(r *source.Record) bool { return r.Wave != "" })
			s.reload(func(c *configs.Config) {
				c.Sources = slices.DeleteFunc(slices.Clone(all), func(one configs.Source) bool { return one.Name == "elements" })
				c.Frozen = []configs.Frozen{{Kind: "source", Name: "elements"}}
			})
			s.reload(func(c *configs.Config) { c.Frozen = nil })
			s.taken("elements")
		})
	}
}

// Mistakes: a look that leaves processes behind, as many as there are looks; or that waits for
// them, or takes one for a failure.
func TestALookLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s, _ := sourced(t, time.Hour)
	dir := t.TempDir()
	for name, script := range map[string]string{
		"silent": `sleep 1000 >/dev/null 2>&1 & echo $! >"$0"; echo state`,
		"output": `sleep 1000 & echo $! >"$0"; echo state`,
		"failed": `sleep 1000 >/dev/null 2>&1 & echo $! >"$0"; exit 3`,
	} {
		s.config.Sources = append(s.config.Sources, configs.Source{
			Wave: configs.Wave{Name: name, All: true}, Command: []string{"sh", "-c", script, filepath.Join(dir, name)}, Every: time.Hour, Timeout: time.Minute,
		})
	}
	s.driver("one", nil)
	for _, name := range []string{"silent", "output", "failed"} {
		r := s.known(name, "was looked at", func(r *source.Record) bool { return r.Digest != "" || r.Failing != "" })
		if failed := name == "failed"; failed != (r.Failing != "") {
			t.Errorf("%s: %+v", name, r)
		}
		pid, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s.eventually("what "+name+" has left ends", func() bool {
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ") // ended, and not yet waited for
		})
	}
}

// Mistake: a source whose output varies makes a wave with each look, however many of its
// waves wait; or what came while one waited makes none.
func TestASourceHasOneWaveThatWaits(t *testing.T) {
	t.Parallel()
	s, write := sourced(t, 20*time.Millisecond)
	looks := filepath.Join(t.TempDir(), "looks")
	s.config.Sources[0].Command = []string{"sh", "-c", `echo >>"$0"; wc -c <"$0"`, looks}
	varies := s.config.Sources[0].Name
	ctx := t.Context()
	if err := s.store.Hold(ctx, wave.Target{}, wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.driver("one", nil)
	s.builder("x")
	s.known(s.config.Sources[1].Name, "is known", func(r *source.Record) bool { return r.Digest != "" })
	first := s.known(varies, "has a wave", func(r *source.Record) bool { return r.Wave != "" })
	s.eventually("it is looked at often", func() bool {
		text, err := os.ReadFile(looks)
		return err == nil && len(text) > 20
	})
	if list := s.waves(); len(list) != 1 || list[0].ID != first.Wave {
		t.Errorf("%d waves wait", len(list))
	}
	write(s.config.Sources[1].Name, "second")
	s.known(s.config.Sources[1].Name, "is not held up", func(r *source.Record) bool { return r.Wave != "" })
	s.reload(func(c *configs.Config) { // its state stays from now on
		c.Sources = slices.Clone(c.Sources)
		c.Sources[0].Command = []string{"echo", "last"}
	})
	if err := s.store.Release(ctx, wave.Target{}, wave.Word{By: "ann"}, nil); err != nil {
		t.Fatal(err)
	}
	last := s.known(varies, "has the wave of what came meanwhile", func(r *source.Record) bool { return r.Text == "last" && r.Wave != "" })
	if list := s.waves(); len(list) != 3 || last.Wave == first.Wave {
		t.Errorf("%d waves, want two of what varies", len(list))
	}
	s.result(first.Wave)
	s.result(last.Wave)
}

// Mistakes: a wave of the first look, two waves of one change, none of one that came while no
// builder ran, or of one that goes back to what was; a command that fails, and makes a wave,
// or is told with each look; a source whose trouble is another's.
func TestWavesOfSources(t *testing.T) {
	t.Parallel()
	s, write := sourced(t, 20*time.Millisecond)
	s.events = true
	stop := []func(){s.driver("one", nil), s.driver("two", nil)}
	s.builder("x")
	first := s.known("elements", "is known", func(r *source.Record) bool { return r.Text == "first elements" })
	s.known("other", "is known", func(r *source.Record) bool { return r.Digest != "" })
	if len(s.waves()) != 0 || first.Wave != "" {
		t.Errorf("the first look makes a wave: %+v", first)
	}
	write("elements", "second")
	second := s.known("elements", "has a wave", func(r *source.Record) bool { return r.Wave != "" })
	w := s.waves()
	if len(w) != 1 || w[0].ID != second.Wave || w[0].By != "source elements" || w[0].Reason != "it has changed: second" || w[0].Jobs != 2 {
		t.Errorf("waves %+v", w)
	}
	for _, end := range stop {
		end()
	}
	write("elements", "first elements")
	write("other", "")
	s.driver("three", nil)
	back := s.known("elements", "goes back", func(r *source.Record) bool { return r.Text == "first elements" && r.Wave != "" })
	s.known("other", "fails", func(r *source.Record) bool { return strings.Contains(r.Failing, "prints nothing") })
	write("other", strings.Repeat("x", 70_000))
	write("elements", "third")
	s.known("elements", "goes on", func(r *source.Record) bool { return r.Text == "third" })
	write("other", "first other")
	s.known("other", "answers", func(r *source.Record) bool { return r.Failing == "" })
	if list := s.waves(); len(list) != 3 || back.Wave == second.Wave {
		t.Errorf("%d waves, want one each of what has changed", len(list))
	}
	reader := recipe.NewLog(event.Root, "").Read(s.models.Session(), recipe.LogPosition{})
	var told []string
	for {
		entry, ok, err := reader.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if e, err := event.Of(entry); err == nil && strings.HasPrefix(e.Subject, "source/") {
			told = append(told, e.Type+" "+e.Subject)
		}
	}
	if want := "poolkeeper.source.failed source/other poolkeeper.source.answers source/other"; strings.Join(told, " ") != want {
		t.Errorf("told %q, want %q", told, want)
	}
	for _, w := range s.waves() {
		s.result(w.ID)
	}
}

// Mistakes: a builder that is killed between its look and its wave, and whose successor makes
// two of a change, or none.
func TestSourcesKilledAfterAnyRequest(t *testing.T) {
	t.Parallel()
	for _, requests := range []int{12, 18, 22, 26, 30, 34, 40} {
		t.Run(fmt.Sprint(requests), func(t *testing.T) {
			t.Parallel()
			s, write := sourced(t, 50*time.Millisecond)
			stop := s.driver("first", nil)
			for _, name := range []string{"elements", "other"} {
				s.known(name, "is known", func(r *source.Record) bool { return r.Digest != "" })
			}
			stop()
			write("elements", "second")
			write("other", "second")
			tap := zktest.StartTap(t, zktest.Shared(t).Addr(), requests)
			s.tap = tap
			stop = s.driver("second", nil)
			s.eventually("the second is killed, or all is done", func() bool { return tap.Ended() || len(s.waves()) == 2 })
			t.Logf("killed before all was done: %t, %d waves", tap.Ended(), len(s.waves()))
			stop()
			s.driver("third", nil)
			for _, name := range []string{"elements", "other"} {
				s.known(name, "has a wave", func(r *source.Record) bool { return r.Wave != "" })
			}
			if list := s.waves(); len(list) != 2 {
				t.Errorf("killed after %d requests: %d waves", requests, len(list))
			}
		})
	}
}

// Mistakes: a command that does not end and holds up others, or that sees the daemon's
// environment; a source that is not configured any more and stays, and a change of the
// configuration that is taken up only by the next builder.
func TestSourcesOfAnotherConfiguration(t *testing.T) {
	t.Parallel()
	s, _ := sourced(t, 20*time.Millisecond)
	s.config.Sources = append(s.config.Sources, configs.Source{
		Wave: configs.Wave{Name: "slow", All: true}, Command: []string{"sleep", "1000"}, Every: time.Second, Timeout: 200 * time.Millisecond,
	}, configs.Source{Wave: configs.Wave{Name: "env", All: true}, Command: []string{"/usr/bin/env", "-u", "PATH", "-u", "HOME", "-u", "LANG", "IT=sees", "/usr/bin/env"}, Every: time.Second, Timeout: time.Minute})
	s.driver("one", nil)
	s.known("slow", "fails", func(r *source.Record) bool { return strings.Contains(r.Failing, "has not ended within 200ms") })
	r := s.known("env", "is known", func(r *source.Record) bool { return r.Digest != "" })
	// All but what it is given; a long PATH of the machine does not matter.
	if r.Text != "IT=sees" {
		t.Errorf("it sees %q", r.Text)
	}
	s.reload(func(c *configs.Config) { c.Sources = c.Sources[:3] })
	s.taken("env")
	if s.unknown("elements") || s.unknown("slow") {
		t.Error("what is configured is gone")
	}
	held, err := recipe.NewLock(s.models.Session(), source.LockPath, "test").Try(t.Context())
	if !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("nobody looks: %v %v", held, err)
	}
}

// During the rollout of a changed file a builder with the older one looks, which does not have
// a source that others have, or has one that others have no more. Mistakes: what it forgets is
// looked at for the first time afterwards, so that what has changed meanwhile makes no wave; a
// record that stays for ever, or goes a day after it came back.
func TestSourcesOfBuildersThatAreBehind(t *testing.T) {
	t.Parallel()
	s, write := sourced(t, 20*time.Millisecond)
	newer := s.current()
	older := *newer
	older.Sources = slices.DeleteFunc(slices.Clone(newer.Sources), func(one configs.Source) bool { return one.Name == "elements" })
	s.builder("x")
	stop := s.driver("newer", nil)
	for _, name := range []string{"elements", "other"} {
		s.known(name, "is known", func(r *source.Record) bool { return r.Digest != "" })
	}
	stop()
	s.reload(func(c *configs.Config) { *c = older })
	stop = s.driver("older", nil)
	s.known("elements", "is missing", func(r *source.Record) bool { return r.Gone != nil })
	s.later(source.Kept - time.Hour)
	write("elements", "second")
	write("other", "second")
	s.known("other", "has a wave", func(r *source.Record) bool { return r.Wave != "" })
	stop()
	s.reload(func(c *configs.Config) { *c = *newer })
	s.driver("another", nil)
	s.known("elements", "has a wave", func(r *source.Record) bool { return r.Wave != "" && r.Gone == nil })
	s.later(2 * source.Kept)
	write("other", "third")
	s.known("other", "is looked at", func(r *source.Record) bool { return r.Text == "third" })
	if s.unknown("elements") {
		t.Error("what came back is forgotten")
	}
}
