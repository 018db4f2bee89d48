//go:build linux

package dib

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/test/lacks"
	"poolkeeper/test/script"
	"poolkeeper/test/tempdir"
)

// The test binary is its own guard, and the daemon that a test kills.
func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each guard otherwise
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case GuardCommand:
			if err := Guard(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		case daemonCommand:
			runDaemon(os.Args[2])
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// newRun makes a run of a script in fresh folders.
func newRun(t *testing.T, body string) Run {
	t.Helper()
	dir := tempdir.New(t)
	scratch, err := NewScratch(dir, "tmp", "builder")
	if err != nil {
		t.Fatal(err)
	}
	return Run{
		Argv:    []string{script.Write(t, "build", body)},
		Env:     []string{"PATH=" + os.Getenv("PATH"), "TMP_DIR=" + scratch.Dir, "OUT=" + dir},
		Dir:     dir,
		Scratch: scratch,
		Log:     filepath.Join(dir, "log"),
		Grace:   300 * time.Millisecond,
	}
}

func readLog(t *testing.T, r Run) string {
	t.Helper()
	text, err := os.ReadFile(r.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventually polls for what happens in another process.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-tick.C
	}
}

// pause waits a moment.
func pause() { <-time.After(time.Millisecond) }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// nothingLeft fails the test when anything of a build is on the machine.
func nothingLeft(t *testing.T, r Run) {
	t.Helper()
	if exists(r.Scratch.Dir) {
		t.Errorf("%s still exists", r.Scratch.Dir)
	}
	if pids, err := r.Scratch.tenants(); err != nil || len(pids) > 0 {
		t.Errorf("processes left: %v, %v", pids, err)
	}
	if pids := r.Scratch.others(); len(pids) > 0 {
		t.Errorf("others left: %v", pids)
	}
	loops, err := loopsOf(r.Scratch.Dir)
	if err != nil || len(loops) > 0 {
		t.Errorf("loop devices left: %v, %v", loops, err)
	}
	points, err := mountsOf(r.Scratch.Dir, nil)
	if err != nil || len(points) > 0 {
		t.Errorf("mounts left: %v, %v", points, err)
	}
}

// needRoot skips where the kernel would refuse mounts, and where only what needs no real
// ones is wanted.
func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("mounts and loop devices are real parts")
	}
	if os.Geteuid() != 0 {
		lacks.Skip(t, "mounts and loop devices need root")
	}
}

func hasLine(text, line string) bool {
	return strings.Contains("\n"+text, "\n"+line+"\n")
}
