package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"poolkeeper/test/journey"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// stopBuilder: a builder that is told to stop in the middle of a build, by a
// person or by a service manager, ends with success and leaves nothing.
func stopBuilder(t *testing.T, binary string) {
	t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newSite(t)
			b := startBuilder(t, binary, s)
			s.build(t, "is being made", func(*zkmodel.Build) bool { return true })
			zktest.Eventually(t, func() bool { return mounted(t, s.dir) }, "file systems of the build are mounted")
			b.end(t, sig)
			if err := journey.CheckNothingLeft(t.Context(), s.dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// missingCommand: a dib-cmd that is not there is named by the record.
func missingCommand(t *testing.T, binary string) {
	t.Helper()
	s := newSite(t, "dib-cmd: /no/such/command --quick")
	b := startBuilder(t, binary, s)
	failed := s.build(t, "has failed", hasFailed)
	b.end(t, syscall.SIGTERM)
	if !strings.Contains(failed.Reason, `"/no/such/command"`) || strings.Contains(failed.Reason, "\n") {
		t.Errorf("reason %q", failed.Reason)
	}
	s.checkNoFiles(t)
}

// fullDisk: a build that finds no space says so, and frees what it took.
func fullDisk(t *testing.T, binary string) {
	t.Helper()
	s := newSite(t)
	s.replace(t, `DIB_JOURNAL_SIZE: "4"`, `DIB_JOURNAL_SIZE: "4", DIB_FILES_ONLY_MB: "40"`) // more than there is room for
	images := filepath.Join(s.dir, "images")
	if err := syscall.Mount("tmpfs", images, "tmpfs", 0, "size=24m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(images, 0); err != nil {
			t.Errorf("something still uses the disk: %v", err)
		}
	})
	b := startBuilder(t, binary, s)
	failed := s.build(t, "has failed", hasFailed)
	b.end(t, syscall.SIGTERM)
	if !strings.Contains(failed.Reason, "disk is full") || !strings.Contains(failed.Reason, images) {
		t.Errorf("reason %q, log:\n%s", failed.Reason, failed.Tail)
	}
	s.checkNoFiles(t)
}

func hasFailed(b *zkmodel.Build) bool { return b.State == zkmodel.BuildFailed }

// checkNoFiles checks that a failed build has left no image file.
func (s site) checkNoFiles(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.dir, "images", "image-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files of a failed build: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "images", ".poolkeeper", "image-0000000001")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a failed build: %v", err)
	}
}

// replace changes the configuration.
func (s site) replace(t *testing.T, old, text string) {
	t.Helper()
	config, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(config), old, text, 1)
	if err := os.WriteFile(s.config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mounted tells whether anything is mounted below dir.
func mounted(t *testing.T, dir string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), dir+"/")
}
