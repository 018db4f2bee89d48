package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// needRoot skips where the kernel would refuse mounts, and where only what needs no real ones is wanted.
func needRoot(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() == 0 && !testing.Short():
	case os.Getenv("POOLKEEPER_REQUIRE_E2E") != "":
		t.Fatal("POOLKEEPER_REQUIRE_E2E is set, and this is not root, or a short test")
	default:
		t.Skip("mounts are real parts, and need root")
	}
}

// precious is a file that lies elsewhere; its folder stands for the machine's /dev.
func precious(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "null")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// bind makes a folder below dir, and shows another there.
func bind(t *testing.T, source, dir, name string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) }) // before its folder goes, whatever has become of it
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Catches: os.RemoveAll on a folder of builds, which deletes what is mounted there: this machine's devices.
func TestWhatIsMountedSurvives(t *testing.T) {
	needRoot(t)
	kept := precious(t)
	var dir string
	t.Run("a test that leaves mounts", func(t *testing.T) {
		dir = New(t)
		for _, name := range []string{"image/mnt", "image/mnt", "image/mnt/deeper", "with blank\\ü"} {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("none", at, "tmpfs", 0, "size=64k"); err != nil {
				t.Fatal(err)
			}
			at = filepath.Join(at, "dev")
			if err := errors.Join(os.MkdirAll(at, 0o700), unix.Mount(filepath.Dir(kept), at, "", unix.MS_BIND, "")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Dir(kept), filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
	})
	left, err := mounts(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("still mounted: %q, %v", left, err)
	}
	for _, point := range left {
		_ = unix.Unmount(point, unix.MNT_DETACH)
	}
	if !exists(kept) {
		t.Error("the file behind the mounts was deleted")
	}
	if exists(dir) {
		t.Error("the folder is still there")
	}
}

// Catches: files that are removed although a mount did not go.
func TestNothingIsRemovedBelowAMount(t *testing.T) {
	needRoot(t)
	kept := precious(t)
	dir, cause := New(t), errors.New("it is held")
	own := filepath.Join(dir, "aaa")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bind(t, filepath.Dir(kept), dir, "image/dev")
	err := remove(dir, func(string) error { return cause })
	if !errors.Is(err, ErrMounted) || !errors.Is(err, cause) || !strings.Contains(err.Error(), dir+"/image/dev") {
		t.Errorf("remove: %v", err)
	}
	if !exists(kept) || !exists(own) {
		t.Errorf("behind the mount: %t, beside it: %t", exists(kept), exists(own))
	}
	if err := remove(dir, func(string) error { return nil }); !errors.Is(err, ErrMounted) || !exists(own) {
		t.Errorf("of a mount that came again: %v", err)
	}
}

// Catches: a build that mounts between our look and the removal. Folder and mount are of one file system, which no
// device number tells.
func TestRemovalEntersNoMount(t *testing.T) {
	needRoot(t)
	kept := precious(t)
	dir := New(t)
	bind(t, filepath.Dir(kept), dir, "image/dev")
	parent, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Close() }()
	if err := removeAt(parent, "image"); !errors.Is(err, ErrMounted) || !exists(kept) {
		t.Errorf("removed: %v; the file behind the mount is there: %t", err, exists(kept))
	}
}

func TestFolderGoesWithItsTest(t *testing.T) {
	var dir string
	kept := precious(t)
	t.Run("", func(t *testing.T) {
		dir = New(t)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.WriteFile(filepath.Join(dir, "a/b/c"), nil, 0o600),
			os.Symlink(filepath.Dir(kept), filepath.Join(dir, "a/link"))); err != nil {
			t.Fatal(err)
		}
	})
	if exists(dir) || !exists(kept) {
		t.Errorf("the folder is there: %t, what a link in it leads to: %t", exists(dir), exists(kept))
	}
	if err := Remove(dir); err != nil {
		t.Errorf("again: %v", err)
	}
}
