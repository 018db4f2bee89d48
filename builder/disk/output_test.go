package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/lacks"
)

// A bind mount of the same file system has its device number: only the kernel
// can tell that it is another tree.
func TestRemoveEmptiesNoMount(t *testing.T) {
	if os.Geteuid() != 0 {
		lacks.Skip(t, "mounts need root")
	}
	dir, precious := t.TempDir(), t.TempDir()
	write(t, precious, "file", "deep/file")
	d := open(t, dir)
	for _, n := range []Name{{"img", "1"}, {"img", "2"}, {"other", "1"}} {
		w, err := d.Begin(n, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Scratch().Make(); err != nil {
			t.Fatal(err)
		}
		write(t, dir, n.String()+".raw", n.String()+".d/mnt/x", n.String()+".d/with blank/x")
		write(t, w.Scratch().Dir, "mnt/x")
		for _, at := range []string{d.Base(n) + ".d/mnt", d.Base(n) + ".d/with blank", w.Scratch().Dir + "/mnt"} {
			if err := syscall.Mount(precious, at, "", syscall.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
		}
	}
	for _, n := range []Name{{"img", "1"}, {"img", "2"}} {
		if err := d.Remove(t.Context(), n, absent(t, n)); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		if left, err := filepath.Glob(dir + "/" + n.String() + ".*"); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	if got := list(t, precious); !cmp.Equal(got, []string{"deep/file", "file"}) {
		t.Errorf("in the source of the mounts: %v", got)
	}
}

// A file that was replaced after it was built is not sent.
func TestVerifyFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	n := Name{"img", "1"}
	write(t, dir, "img-1.raw", "elsewhere")
	if _, err := d.Verify(t.Context(), n, "raw", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(d.File(n, "raw")), os.Symlink("elsewhere", d.File(n, "raw"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(t.Context(), n, "raw", "", ""); !errors.Is(err, ErrOutput) {
		t.Errorf("got %v", err)
	}
}

func TestIsFormat(t *testing.T) {
	for format, text := range map[string]string{
		"qcow2": "QFI\xfb...", "vhd": strings.Repeat("x", 600) + "conectix" + strings.Repeat("\x00", 504), "raw": "x",
		"vmdk": "# Disk DescriptorFile\n", "tgz": "\x1f\x8b\x08", "squashfs": "hsqs...", "of tomorrow": "x",
	} {
		if is, err := isFormat(strings.NewReader(text), int64(len(text)), format); err != nil || !is {
			t.Errorf("%s: %v, %v", format, is, err)
		}
		if _, known := signatures[format]; !known {
			continue
		}
		for _, other := range []string{"x", "QFI", strings.Repeat("x", 2000)} {
			if is, err := isFormat(strings.NewReader(other), int64(len(other)), format); err != nil || is {
				t.Errorf("%s: %.10q is one: %v, %v", format, other, is, err)
			}
		}
	}
}
