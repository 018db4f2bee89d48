package snapshots

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"poolkeeper/configs/clock"
)

// The variables that make TestLauncherIsKilled the launcher that is killed.
const (
	victimDir   = "SNAPSHOTS_TEST_VICTIM_DIR"
	victimImage = "SNAPSHOTS_TEST_VICTIM_IMAGE"
	victimKey   = "SNAPSHOTS_TEST_VICTIM_KEY"
)

// A launcher that is killed while it makes a snapshot, or resumes a guest, leaves no QEMU that
// nobody knows, no half of a snapshot after the next start, and a node that the next launcher
// brings up.
func TestLauncherIsKilled(t *testing.T) {
	if dir := os.Getenv(victimDir); dir != "" {
		victim(t, dir)
		return
	}
	s := newSite(t)
	id := s.upload(t, ready(t))
	t.Run("in the making", func(t *testing.T) {
		s.kill(t, id, func() bool { _, half := s.snapshots(t); return len(half) > 0 && len(processes(t, s.dir)) > 0 })
		s.await(t, "the end of its QEMU", func() bool { return len(processes(t, s.dir)) == 0 })
		s.open(t) // sweeps
		if whole, half := s.snapshots(t); len(whole)+len(half) > 0 {
			t.Errorf("left: %v %v", whole, half)
		}
		s.recover(t, id)
		if got := s.log.count("Snapshot of an image is made"); got != 1 {
			t.Errorf("%d snapshots were made", got)
		}
	})
	for _, name := range []string{"ram", "config.iso", "snapshot.sock"} {
		t.Run("with "+name, func(t *testing.T) {
			s.kill(t, id, func() bool {
				there, err := filepath.Glob(filepath.Join(s.dir, "guests", "*", name))
				return err == nil && len(there) > 0
			})
			s.open(t)
			s.recover(t, id)
		})
	}
}

// victim is a launcher that makes one node, says when it begins, and stays.
func victim(t *testing.T, dir string) {
	t.Helper()
	s := &site{key: key{public: os.Getenv(victimKey)}, dir: dir}
	s.open(t)
	if _, err := os.Stdout.WriteString("begin\n"); err != nil {
		t.Fatal(err)
	}
	s.launch(t, 1, os.Getenv(victimImage))
	<-t.Context().Done()
}

// kill runs a victim and kills it when it has come so far.
func (s *site) kill(t *testing.T, image string, far func() bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLauncherIsKilled$")
	cmd.Env = append(os.Environ(), victimDir+"="+s.dir, victimImage+"="+image, victimKey+"="+s.key.public)
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
	s.await(t, "the moment to kill it", far)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the launcher ended before it was killed")
	}
}

// recover: the next launcher brings the node up, once, and takes it away.
func (s *site) recover(t *testing.T, image string) {
	t.Helper()
	instance := s.launch(t, 1, image)
	client, _ := s.dial(t, instance)
	if name := ask(t, client, "hostname"); name != "np1" {
		t.Errorf("the node is called %s", name)
	}
	if nodes, running := s.nodes(t), processes(t, s.dir); len(nodes) != 1 || len(running) != 1 {
		t.Errorf("nodes %v, processes %v", nodes, running)
	}
	s.delete(t, instance.ExternalID)
	left, err := os.ReadDir(filepath.Join(s.dir, "guests"))
	if err != nil || len(left) != 1 { // the lock
		t.Errorf("left: %v, %v", left, err)
	}
}

func (s *site) await(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(bootTime); !come(); {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
		if err := clock.Sleep(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
