package waves_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"poolkeeper/builder/waves"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: an end that changes after it was known, since who told it died, or a person wanted
// something else meanwhile; a retry that is lost then, or taken for a part of the wave's first
// run; an end that is told twice.
func TestWhatAWaveComesToIsToldByAny(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b", "c")
	s.events, s.fails["b"] = true, 100
	ctx := t.Context()
	s.driver("one", func(c *recipe.Client, m waves.Moment) {
		if m == waves.Reported {
			c.Close()
		}
	})
	s.builder("x")
	s.builder("y")
	s.create("w", func(w *wave.Wave) { w.MaxFailures = "1" })
	state := func() wave.Status {
		e, err := s.store.Wave(ctx, "w")
		if err != nil {
			t.Fatal(err)
		}
		return e.Status
	}
	s.eventually("it is reporting", func() bool { return state().State == wave.Reporting })
	known := state()
	if known.End != wave.Failed || known.Ended == nil || known.Counts[wave.Completed] != 2 {
		t.Errorf("what is known: %+v", known)
	}
	if err := s.store.Delete(ctx, "w", wave.Word{}); !errors.Is(err, wave.ErrNotOver) {
		t.Errorf("delete a wave that is not told: %v", err)
	}
	if err := s.store.Retry(ctx, "w", "", wave.Word{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Set(ctx, "w", wave.MarkCancel, wave.Word{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	first := make(chan *wave.Report, 1)
	s.driver("two", func(_ *recipe.Client, m waves.Moment) {
		if m == waves.Ended && len(first) == 0 {
			first <- s.result("w")
		}
	})
	if r := <-first; r.State != wave.Failed || !r.Ended.Equal(*known.Ended) || r.Jobs[1].State != wave.Failed {
		t.Errorf("told: %+v, what was known: %+v", r, known)
	}
	s.eventually("it is retried, and cancelled then", func() bool { return state().State == wave.Cancelled })
	if r := s.result("w"); r.Counts[wave.Cancelled] != 1 || r.Counts[wave.Completed] != 2 {
		t.Errorf("after the retry: %+v", r)
	}
	var ends []string
	reader := recipe.NewLog(event.Root, "").Read(s.models.Session(), recipe.LogPosition{})
	for {
		entry, more, err := reader.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		e, err := event.Of(entry)
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.WaveEnded {
			ends = append(ends, e.Data["state"].(string))
		}
	}
	if strings.Join(ends, " ") != "failed cancelled" {
		t.Errorf("told of ends: %q", ends)
	}
}

// Mistakes: a wave whose report cannot be written that says nothing of it, that is begun anew,
// or that is not told once it can; one of a later release's state that is worked at, or that
// keeps its lock from those who know the state.
func TestReportThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	ctx := t.Context()
	s.driver("one", nil)
	s.driver("two", nil)
	s.builder("x")
	s.create("before")
	s.result("before")
	allow := zktest.Forbid(t, s.addr, s.root, wave.Root+"/results")
	s.create("w")
	s.eventually("it says why it is not told", func() bool {
		e, err := s.store.Wave(ctx, "w")
		return err == nil && e.Status.State == wave.Reporting && e.Status.End == wave.Completed && strings.Contains(e.Status.Note, "its report cannot be written")
	})
	allow()
	if r := s.result("w"); r.State != wave.Completed || r.Counts[wave.Completed] != 2 {
		t.Errorf("told: %+v", r)
	}
	if e, err := s.store.Wave(ctx, "w"); err != nil || e.Status.Note != "" {
		t.Errorf("after it: %+v, %v", e.Status, err)
	}
	s.mu.Lock()
	if s.builds["a"] != 2 || s.builds["b"] != 2 {
		t.Errorf("builds: %v", s.builds)
	}
	s.mu.Unlock()
	const status = wave.Root + "/status/later"
	unknown := []byte(`{"state":"telling","counts":{"completed":1}}`)
	made, err := s.store.Create(ctx, &wave.Wave{ID: "later", MaxFailures: "0"}, []wave.Job{{Image: "a"}}, recipe.OpSet(status, unknown, 0))
	if err != nil || !made {
		t.Fatalf("create: %v, %v", made, err)
	}
	s.eventually("its lock is free for others", func() bool {
		held, err := s.store.Queue().TryTake(ctx, "later", "test")
		return err == nil && held.Release(ctx) == nil
	})
	if data, _, err := s.models.Session().Get(ctx, status); err != nil || !bytes.Equal(data, unknown) {
		t.Errorf("what a later release has written: %s, %v", data, err)
	}
}
