//go:build linux

package dib

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestRunToTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		exit int
	}{
		"success":        {"echo out; echo err >&2; exit 0", 0},
		"failure":        {"echo out; exit 3", 3},
		"killed":         {"kill -KILL $$", 137},
		"no last eol":    {"printf out", 0},
		"leaves orphans": {"(sleep 1000 &) ; setsid sleep 1000 & exit 0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.body)
			result, err := r.Do(t.Context())
			if err != nil || result.ExitCode != c.exit || result.Stopped != "" || result.Left != "" {
				t.Fatalf("got %+v, %v", result, err)
			}
			if log := readLog(t, r); !strings.HasSuffix(log, ExitLine+itoa(c.exit)+"\n") {
				t.Errorf("last line of the log: %q", log)
			}
			nothingLeft(t, r)
		})
	}
}

func TestRunTellsOfItsProcessesBeforeItStarts(t *testing.T) {
	r := newRun(t, `touch "$OUT/ran"`)
	r.Started = func(p Processes) error {
		if !p.Guard.alive() {
			t.Errorf("no guard: %+v", p)
		}
		if exists(r.Dir + "/ran") {
			t.Error("the build ran before it was noted")
		}
		return nil
	}
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(r.Dir + "/ran") {
		t.Error("the build did not run")
	}
}

func TestRunIsNotStartedWhenItCannotBeNoted(t *testing.T) {
	r := newRun(t, `touch "$OUT/ran"`)
	full := errors.New("disk full")
	r.Started = func(Processes) error { return full }
	if _, err := r.Do(t.Context()); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if exists(r.Dir + "/ran") {
		t.Error("the build ran")
	}
	nothingLeft(t, r)
}

func TestMissingCommand(t *testing.T) {
	for name, argv0 := range map[string]string{
		"not in PATH": "no-such-image-create", "no file": "/no/such/file", "folder": "/", "not executable": "/etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, "")
			r.Argv[0] = argv0
			_, err := r.Do(t.Context())
			if !errors.Is(err, ErrCommand) || !strings.Contains(err.Error(), argv0) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The command has a chance to clean up, and is stopped for a reason.
func TestStopIsTERMToTheLeader(t *testing.T) {
	r := newRun(t, `trap 'echo cleaning; kill $!; exit 143' TERM
touch "$OUT/up"; sleep 1000 & wait`)
	r.Grace = 10 * time.Second
	why := errors.New("the operator said so")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for !exists(r.Dir + "/up") {
			<-time.After(time.Millisecond)
		}
		cancel(why)
	}()
	result, err := r.Do(ctx)
	if !errors.Is(err, ErrStopped) || !errors.Is(err, why) || result.ExitCode != 143 {
		t.Fatalf("got %+v, %v", result, err)
	}
	log := readLog(t, r)
	for _, line := range []string{"cleaning", "poolkeeper: build stopped: the operator said so", ExitLine + "143"} {
		if !hasLine(log, line) {
			t.Errorf("no line %q in the log:\n%s", line, log)
		}
	}
	nothingLeft(t, r)
}

// A command that ignores TERM, with descendants that hide in sessions of its own, is
// killed with all of it, and nothing of a run of another image beside it.
func TestStopIsKILLToTheProcessTree(t *testing.T) {
	beside := newRun(t, `(setsid sh -c 'while [ ! -e "$OUT/go" ]; do sleep 0.02; done; touch "$OUT/gone"' &)
touch "$OUT/up"
while [ ! -e "$OUT/gone" ]; do sleep 0.02; done`)
	besideEnded := make(chan error, 1)
	go func() {
		result, err := beside.Do(t.Context())
		if err == nil && (result.ExitCode != 0 || result.Left != "") {
			err = fmt.Errorf("got %+v", result)
		}
		besideEnded <- err
	}()
	eventually(t, "the other run is under way", func() bool { return exists(beside.Dir + "/up") })
	r := newRun(t, `trap '' TERM
setsid sh -c 'cd /; sleep 1000' &
(setsid sleep 1000 &)
touch "$OUT/up"
while :; do sleep 1000; done`)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too long"))
	defer cancel()
	before := time.Now()
	result, err := r.Do(ctx)
	if !errors.Is(err, ErrStopped) || result.ExitCode != 137 || result.Left != "" {
		t.Fatalf("got %+v, %v", result, err)
	}
	if took := time.Since(before); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
	nothingLeft(t, r)
	if err := os.WriteFile(beside.Dir+"/go", nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := <-besideEnded; err != nil {
		t.Errorf("the run of another image: %v", err)
	}
	nothingLeft(t, beside)
}

func TestGuardEndsABuildWhoseLeaseIsOver(t *testing.T) {
	r := newRun(t, "exec sleep 1000")
	calls := 0
	r.Lease = func() time.Duration { // cut off after the third renewal
		if calls++; calls > 3 {
			return -time.Second
		}
		return 300 * time.Millisecond
	}
	result, err := r.Do(t.Context())
	if !errors.Is(err, ErrStopped) || !strings.Contains(result.Stopped, "lease") {
		t.Fatalf("got %+v, %v", result, err)
	}
	if calls < 4 {
		t.Errorf("the lease was renewed %d times", calls)
	}
	nothingLeft(t, r)
}

func TestLeaseIsRenewedForAsLongAsTheBuildTakes(t *testing.T) {
	r := newRun(t, "sleep 1.5")
	r.Lease = func() time.Duration { return time.Second }
	if result, err := r.Do(t.Context()); err != nil || result.ExitCode != 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	r := newRun(t, `printf 'a hunter22 b\nxhunter22hunter22y\nkey line one\n  key line two\nshort abc\n'`)
	r.Secrets = []string{"hunter22", "key line one\nkey line two\n", "abc", ""}
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "a ******** b\nx****************y\n********\n  ********\nshort abc\n" + ExitLine + "0\n"
	if got := readLog(t, r); got != want {
		t.Errorf("log:\n%s", got)
	}
}

func TestEnvironmentIsExactlyWhatWasGiven(t *testing.T) {
	t.Setenv("OS_PASSWORD", "cloud")
	r := newRun(t, "env")
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := readLog(t, r)
	if strings.Contains(log, "OS_PASSWORD") || !strings.Contains(log, "TMP_DIR="+r.Scratch.Dir) {
		t.Errorf("environment:\n%s", log)
	}
}

// Whoever starts a daemon has an umask; an image's folders do not have it.
func TestUmaskOfTheBuildIsFixed(t *testing.T) {
	for _, umask := range []string{"077", "027", "000"} {
		r := newRun(t, "umask")
		r.Guard = []string{"sh", "-c", "umask " + umask + `; exec "$0" "$@"`, os.Args[0], GuardCommand}
		if _, err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if log := readLog(t, r); !strings.HasPrefix(log, "0022\n") {
			t.Errorf("a build that is started with umask %s says %q", umask, log)
		}
	}
}
