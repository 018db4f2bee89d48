package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/journey"
	"poolkeeper/test/tempdir"
)

// killedDemo kills the demonstration while a node boots, without a warning: what it has
// started ends by itself, launchers and guest included.
func killedDemo(t *testing.T, binary string) {
	t.Helper()
	dir := tempdir.New(t)
	program, told := filepath.Join(dir, "demo"), filepath.Join(dir, "told")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "poolkeeper/test/demo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does, which has compiled most of it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil { //nolint:gosec // builds of other users run there
		t.Fatal(err)
	}
	out, err := os.Create(told)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	demo := exec.CommandContext(t.Context(), program, "-binary", binary)
	demo.Stdout, demo.Stderr = out, out
	demo.Env = append(os.Environ(), "TMPDIR="+work)
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = demo.Wait() }() // it is killed
	for {
		text, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "ok     kill -9 the launcher") {
			break // a guest, a launcher, a builder and a ZooKeeper run
		}
		select {
		case <-ended:
			t.Fatalf("the demo has ended:\n%s", text)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := journey.CheckNothingLeft(t.Context(), work); err == nil {
		t.Fatal("nothing runs while a node boots: this test sees too little")
	}
	if err := demo.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for began := time.Now(); ; { // each look has a grace of its own
		err := journey.CheckNothingLeft(t.Context(), work)
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("a minute after the demo was killed: %v", err)
		}
	}
}
