package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/sim/series"
)

// says is a world whose program is a script of the shell's.
func says(t *testing.T, name, script string) Native {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Native{World: World{Name: name, Test: "Test"}, file: file, dir: dir}
}

// report is a seed that a program is through with.
func report(seed int, hours float64, wrongs string) string {
	return fmt.Sprintf(`echo '%s%d'; echo '%s{"seed":%d,"hours":%g,"wrongs":[%s],"counts":{"cut":1}}'`+"\n", series.Begun, seed, series.Mark, seed, hours, wrongs)
}

// begun is a seed that a program does not come to an end with.
const begun = "echo '" + series.Begun + "9'; printf '" + series.Mark + "{\"seed'; exec sleep 60\n"

// Mistakes: to have no more time is taken for a failure, or loses what was done; one world takes the time of all.
func TestTimeThatIsOverIsNoFailure(t *testing.T) {
	s := Search{
		Natives: []Native{says(t, "slow", report(1, 0.5, "")+begun), says(t, "quick", report(1, 100, ""))},
		Seed:    1, Hours: 50, For: 2 * time.Second, Jobs: 1,
	}
	var told strings.Builder
	began := time.Now()
	found, err := s.Go(t.Context(), &told)
	if err != nil || len(found.Failures) > 0 || len(found.Unmet) > 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, want := range []string{"slow: 0.5 agent-hours, 1 seeds from 1", "slow: its 1s were over; 50 agent-hours were wanted", "quick: 100.0 agent-hours", "cut 1"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not told in\n%s", want, &told)
		}
	}
	if strings.Contains(told.String(), "quick: its ") {
		t.Errorf("one that had time enough had none:\n%s", &told)
	}
}

// Mistakes: what was found is lost when time is over at that moment; a failure is not told with the command that repeats it.
func TestWhatWasFoundIsTold(t *testing.T) {
	wrong := `"1.0s a WRONG: both act"`
	s := Search{
		Natives: []Native{
			says(t, "late", report(7, 0.5, wrong)+begun), says(t, "bad", report(8, 1, wrong)+"exit 1\n"),
			says(t, "dead", "echo '"+series.Begun+"3'; echo 'panic: deadlock'; exit 2\n"),
		},
		Seed: 1, Hours: 50, For: 6 * time.Second, Jobs: 1,
	}
	var told strings.Builder
	found, err := s.Go(t.Context(), &told)
	if err != nil || len(found.Failures) != 3 {
		t.Fatalf("%d were found: %v\n%s", len(found.Failures), err, &told)
	}
	for _, want := range []string{
		"late: seed 7 went wrong: 1.0s a WRONG: both act", "-world late -seed 7 -hours 0.01", "-world bad -seed 8 ",
		"dead: seed 3 went wrong: panic: deadlock",
	} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is not told in\n%s", want, &told)
		}
	}
}

// Mistakes: what could not be done is told as found, or as nothing; other worlds are not looked at.
func TestWhatCannotBeDoneIsAnError(t *testing.T) {
	s := Search{Natives: []Native{says(t, "none", "echo 'no such flag'; exit 2"), says(t, "quick", report(1, 100, ""))}, Seed: 1, Hours: 50, Jobs: 1}
	var told strings.Builder
	found, err := s.Go(t.Context(), &told)
	if err == nil || !strings.Contains(err.Error(), "none: nothing was simulated") || len(found.Failures) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if !strings.Contains(told.String(), "quick: 100.0 agent-hours") {
		t.Errorf("told is\n%s", &told)
	}
	s.For = time.Nanosecond
	s.Natives = s.Natives[1:]
	if found, err := s.Go(t.Context(), &told); err != nil || len(found.Failures) > 0 {
		t.Errorf("no time at all: %+v, %v", found, err)
	}
	s.For = 0
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if found, err := s.Go(ctx, &told); err == nil || len(found.Failures) > 0 {
		t.Errorf("interrupted: %+v, %v", found, err)
	}
}

// Mistakes: a program more than is needed; seeds that are left out or come twice; the end waits for one program.
func TestTurnsAreAllHours(t *testing.T) {
	h := &Hunt{Seed: 5, Hours: 200, Jobs: 2, next: 5, counts: map[string]int{}}
	next, seeds := uint64(5), 0
	for {
		r, more := h.turn()
		if !more {
			break
		}
		if r.Seed != next || r.Count > atOnce {
			t.Fatalf("%+v, the next is %d", r, next)
		}
		var done Result
		for range r.Count {
			done.Reports = append(done.Reports, series.Report{Hours: 4})
		}
		next += uint64(r.Count)
		seeds += r.Count
		h.note(r, done)
	}
	if seeds != 50 {
		t.Errorf("%d seeds of 4 hours", seeds)
	}
}
