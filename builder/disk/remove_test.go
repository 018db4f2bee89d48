package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/builder/dib"
)

// stuck makes a folder with a file in it that stays for as long as this host has no tools of root's: something is
// mounted there, or, as only root mounts, it is not ours to write in.
func stuck(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		write(t, dir, "file")
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		return
	}
	precious := t.TempDir()
	write(t, precious, "file")
	if err := syscall.Mount(precious, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		if got := list(t, precious); !cmp.Equal(got, []string{"file"}) {
			t.Errorf("in the source of the mount: %v", got)
		}
	})
}

// there tells whether a file is.
func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// machine is a host that reclaims nothing, and notes of what it was asked.
type machine struct {
	dib.Here
	fails error
	asked []dib.Scratch
}

func (m *machine) Reclaim(_ context.Context, _ dib.Processes, s dib.Scratch) error {
	m.asked = append(m.asked, s)
	return m.fails
}

func openOn(t *testing.T, host Host, dir string) *Images {
	t.Helper()
	d, err := OpenOn(host, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// Mistake: where something of a build cannot be removed, the manifest goes all the same, and nothing says any more whose the rest is;
// or the build is taken for gone; or files beside a mount go, of which nobody knows what they are.
func TestWhatCannotBeRemovedIsKnownOn(t *testing.T) {
	path := os.Getenv("PATH")
	n := Name{"img", "1"}
	for name, at := range map[string]string{
		"beside the image":           "img-1.d/mnt",
		"in our own folder":          ".poolkeeper/img-1/a/mnt",
		"in our own folder, at last": ".poolkeeper/img-1/tmp/mnt",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := openOn(t, &machine{}, dir)
			if _, err := d.Begin(n, ""); err != nil {
				t.Fatal(err)
			}
			beside := filepath.Join(filepath.Dir(at), "beside")
			write(t, dir, "img-1.raw", beside)
			stuck(t, filepath.Join(dir, at))
			t.Setenv("PATH", t.TempDir())
			if err := d.Remove(t.Context(), n, absent(t, n)); !errors.Is(err, dib.ErrLeft) || !strings.Contains(err.Error(), "remove files of img-1") {
				t.Errorf("got %v", err)
			}
			if !there(d.manifestPath(n)) || os.Geteuid() == 0 && !there(filepath.Join(dir, beside)) {
				t.Errorf("left: %v", list(t, dir))
			}
			if b, ok := d.Build(n); !ok || !b.Ours {
				t.Errorf("known: %t, %+v", ok, b)
			}
			t.Setenv("PATH", path)
			if err := d.Remove(t.Context(), n, absent(t, n)); err != nil {
				t.Fatalf("again: %v", err)
			}
			if got := list(t, dir); len(got) > 0 {
				t.Errorf("left at last: %v", got)
			}
		})
	}
}

// Mistake: files are removed while a build that cannot be ended still writes them, or it is taken for ended.
func TestNothingOfABuildThatCannotBeEndedGoes(t *testing.T) {
	dir, n := t.TempDir(), Name{"img", "1"}
	host := &machine{fails: errors.New("the guard lives on")}
	d := openOn(t, host, dir)
	if _, err := d.Begin(n, ""); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "img-1.raw")
	for what, err := range map[string]error{"remove": d.Remove(t.Context(), n, absent(t, n)), "reclaim": d.Reclaim(t.Context())} {
		if !errors.Is(err, host.fails) || !strings.Contains(err.Error(), "img-1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b, ok := d.Build(n); !ok || !b.Running || !there(filepath.Join(dir, "img-1.raw")) {
		t.Errorf("%+v; left: %v", b, list(t, dir))
	}
	host.fails = nil
	if err := d.Reclaim(t.Context()); err != nil {
		t.Error(err)
	}
	if b, ok := d.Build(n); !ok || b.Running {
		t.Errorf("reclaimed: %+v", b)
	}
}

// Mistake: a folder of images that cannot be read, as its disk is not mounted, is taken for one without files.
func TestAFolderThatIsGoneHasNothingRemoved(t *testing.T) {
	dir, n := filepath.Join(t.TempDir(), "images"), Name{"img", "1"}
	d := openOn(t, &machine{}, dir)
	if _, err := d.Begin(n, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), n, absent(t, n)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if b, ok := d.Build(n); !ok || !b.Ours {
		t.Errorf("known: %t, %+v", ok, b)
	}
}

// Mistake: a format whose file cannot be removed is forgotten, and counts for nothing on the disk.
func TestAFormatThatCannotBeRemovedIsKnownOn(t *testing.T) {
	dir, n := t.TempDir(), Name{"img", "1"}
	write(t, dir, "img-1.raw", "img-1.raw.md5")
	d := openOn(t, &machine{}, dir)
	if err := os.Remove(d.File(n, "raw")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "img-1.raw/file") // what a file's name led to is no file any more
	proof := absent(t, n)
	if err := d.RemoveFormat(n, "raw", proof); !errors.Is(err, syscall.ENOTEMPTY) || !strings.Contains(err.Error(), "remove raw of img-1") {
		t.Errorf("got %v", err)
	}
	if b, ok := d.Build(n); !ok || !slices.Equal(b.Formats, []string{"raw"}) {
		t.Errorf("known: %t, %+v", ok, b)
	}
	if there(dir + "/img-1.raw.md5") {
		t.Error("its checksums, which can go, are left")
	}
}

// Mistake: what has ended is swept anew at each start, and the start waits for it; or something that we have not begun is.
func TestOnlyWhatRunsIsReclaimed(t *testing.T) {
	dir, host := t.TempDir(), &machine{}
	write(t, dir, "img-3.raw")
	d := openOn(t, host, dir)
	var running []dib.Scratch
	for _, id := range []string{"1", "2", "4"} {
		w, err := d.Begin(Name{"img", id}, "")
		if err == nil && id != "2" {
			running = append(running, w.Scratch())
		} else if err == nil {
			err = errors.Join(os.MkdirAll(w.Scratch().Dir, 0o755), w.Finish(nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(host.asked) != fmt.Sprint(running) {
		t.Errorf("reclaimed %v, want %v", host.asked, running)
	}
	if err := d.Reclaim(t.Context()); err != nil || len(host.asked) != len(running) {
		t.Errorf("again: %v, %v", host.asked[len(running):], err)
	}
}

// An earlier release noted its folder as it was configured. Mistake: where that leads through a link, the folder is not
// recognised, and stays.
func TestReclaimSweepsAnEarlierReleaseBehindALink(t *testing.T) {
	dir, shared := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(shared, link); err != nil {
		t.Fatal(err)
	}
	write(t, shared, "poolkeeper-img-1/image/raw")
	write(t, dir, ".poolkeeper/img-1/manifest.json")
	text := `{"image":"img","build":"1","tmp_dir":"` + link + `/poolkeeper-img-1","processes":{"guard":{"pid":0,"start":"","boot":""}},"done":false}`
	if err := os.WriteFile(filepath.Join(dir, ".poolkeeper/img-1/manifest.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Reclaim(t.Context()); err != nil {
		t.Error(err)
	}
	if got := list(t, shared); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
