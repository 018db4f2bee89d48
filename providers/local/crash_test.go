package local

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The variable that makes TestLauncherIsKilled the launcher that is killed, and
// the one that tells it the image.
const (
	victimDir   = "LOCAL_TEST_VICTIM_DIR"
	victimImage = "LOCAL_TEST_VICTIM_IMAGE"
)

// A launcher that is killed at any moment leaves a guest that runs, or one that
// the next create of the same node brings up, and never two.
func TestLauncherIsKilled(t *testing.T) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(t, dir)
		return
	}
	dir := t.TempDir()
	p := open(t, section(dir), Options{})
	image := upload(t, p)
	cleanUp(t, p)
	for _, after := range []time.Duration{0, 10, 20, 30, 45, 60, 90, 120, 2000} {
		killLauncher(t, dir, image, after*time.Millisecond)
		fresh := open(t, section(dir), Options{}) // sweeps
		id, err := fresh.CreateNode(t.Context(), spec(fresh, 1, image))
		if err != nil {
			t.Fatalf("killed after %dms: %v", after, err)
		}
		if _, err := fresh.WaitNode(t.Context(), id); err != nil {
			t.Errorf("killed after %dms: %v", after, err)
		}
		if ids, err := fresh.guests.ids(); err != nil || len(ids) != 1 {
			t.Errorf("killed after %dms: guests %v, %v", after, ids, err)
		}
		g, err := fresh.read(id)
		if err != nil {
			t.Fatal(err)
		}
		if n := processes(t, g); n != 1 {
			t.Errorf("killed after %dms: %d processes", after, n)
		}
		if err := fresh.DeleteNode(t.Context(), id); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(p.guests.dir); err != nil || len(left) != 1 {
			t.Errorf("killed after %dms: left behind %v, %v", after, left, err)
		}
	}
}

// victim is a launcher that creates one node, says when it begins, and stays.
func victim(t *testing.T, dir string) {
	t.Helper()
	p := open(t, section(dir), Options{})
	if _, err := os.Stdout.WriteString("begin\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateNode(t.Context(), spec(p, 1, os.Getenv(victimImage))); err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done()
}

// killLauncher runs a victim and kills it some time after it began.
func killLauncher(t *testing.T, dir, image string, after time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLauncherIsKilled$")
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimImage+"="+image)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "begin" {
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	<-timer.C
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the launcher ended before it was killed")
	}
}
