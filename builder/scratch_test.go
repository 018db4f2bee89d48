package builder

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// resident starts a process that lives in dir; alive reports whether it does so
// still.
func resident(t *testing.T, dir string) (alive func() bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return func() bool {
		select {
		case <-ended:
			return false
		case <-time.After(300 * time.Millisecond):
			return true
		}
	}
}

// In a temporary folder that everybody can write to, others may put anything
// under any name before us.
func TestPlantedTemporaryFoldersAreNotUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	shared, precious := filepath.Join(s.dir, "a shared folder"), filepath.Join(s.dir, "precious")
	for _, dir := range []string{shared, precious} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(precious, "file")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.addImage("other")
	s.config.Providers[0].DiskImages = append(s.config.Providers[0].DiskImages, s.config.Providers[0].DiskImages[0])
	s.config.Providers[0].DiskImages[1].Name = "other"
	for i := range s.config.DiskImages {
		image := &s.config.DiskImages[i]
		image.EnvVars["TMPDIR"] = shared
		for _, id := range []string{"0000000000", "0000000001", "0000000002"} {
			if err := os.Symlink(precious, filepath.Join(shared, "poolkeeper-"+image.Name+"-"+id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	alive := resident(t, precious)
	stop := s.start()
	s.ready("img", 1, "north")
	s.ready("other", 1, "north")
	stop()
	if !alive() {
		t.Error("a process in the folder that a planted link points to was killed")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what a planted link points to was removed: %v", err)
	}
	entries, err := os.ReadDir(shared)
	if err != nil || len(entries) != 6 {
		t.Errorf("in the shared folder: %v, %v", entries, err)
	}
}

// Two installations on one host may name images alike and share a folder for
// temporary files.
func TestTwoInstallationsShareATemporaryFolder(t *testing.T) {
	t.Parallel()
	one, goOn := waitingSite(t)
	other := newSite(t)
	shared := t.TempDir()
	one.image().EnvVars["TMPDIR"], other.image().EnvVars["TMPDIR"] = shared, shared
	one.start()
	first := one.underWay()
	other.start()
	other.ready("img", 1, "north")
	goOn()
	one.eventually("the build has ended", func() bool { return len(one.builds("img", zkmodel.BuildBuilding)) == 0 })
	if b := one.builds("img", zkmodel.BuildReady); len(b) != 1 || b[0].ID != first.ID {
		log, _ := os.ReadFile(filepath.Join(one.config.BuildLogDir, first.Name()+".log"))
		t.Errorf("the other installation ended build %s: %s", first.ID, strings.Join(strings.Split(string(log), "\n"), " | "))
	}
	one.eventually("the shared folder is empty", func() bool {
		entries, err := os.ReadDir(shared)
		return err == nil && len(entries) == 0
	})
}
