package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Images {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && !e.IsDir() && rel != ".poolkeeper/lock" && rel != "builder_id.txt" {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestOneBuilderAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "images")
	d := open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestBuilderIDStays(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	first, err := d.BuilderID()
	if err != nil || len(first) != 36 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := d.BuilderID(); again != first || err != nil {
		t.Errorf("%q, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "builder_id.txt"), []byte("theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := d.BuilderID(); id != "theirs" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// A crash leaves nothing in the temporary folder of the machine, which nobody
// of ours tidies.
func TestBuilderIDIsWrittenInOurFolder(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	made := created(t, tmp)
	write(t, dir, ".poolkeeper/.builder_id.txt123") // of a crash
	d := open(t, dir)
	if _, err := d.BuilderID(); err != nil {
		t.Fatal(err)
	}
	if names := made(); len(names) > 0 {
		t.Errorf("in TMPDIR were: %q", names)
	}
	if got := list(t, dir); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// created returns a function that tells which names were made in a folder since.
func created(t *testing.T, dir string) func() []string {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		buffer := make([]byte, 64<<10)
		n, _ := unix.Read(fd, buffer) // nothing to read is nothing made
		var names []string
		for rest := buffer[:max(n, 0)]; len(rest) > unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			names = append(names, strings.TrimRight(string(rest[unix.SizeofInotifyEvent:size]), "\x00"))
			rest = rest[size:]
		}
		return names
	}
}

func TestScanFindsWhatAMindfulNameSays(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "img-0000000001.qcow2", "img-0000000001.raw", "img-0000000001.raw.md5", "img-0000000001.d/x",
		"a-b-5446a9b04ed29e48.vhd", "notes.txt", "img-.raw", "-12.raw", "img-xyz.raw", ".poolkeeper/broken-1/manifest.json")
	d := open(t, dir)
	want := []Build{{Name: Name{"img", "0000000001"}, Formats: []string{"qcow2", "raw"}}}
	if diff := cmp.Diff(want, d.Builds("img")); diff != "" {
		t.Errorf("img (-want +got):\n%s", diff)
	}
	if got := d.Builds("a-b"); len(got) != 1 || got[0].ID != "5446a9b04ed29e48" {
		t.Errorf("a-b: %+v", got)
	}
	if got := d.Names(); len(got) != 0 {
		t.Errorf("ours: %v", got)
	}
}

func TestWorkSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	n := Name{"img", "0000000001"}
	w, err := d.Begin(n, "")
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := d.Build(n); !ok || !b.Ours || !b.Running {
		t.Errorf("begun: %+v", b)
	}
	write(t, dir, "img-0000000001.raw")
	file, err := Sum(t.Context(), d.File(n, "raw"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(map[string]File{"raw": file}); err != nil {
		t.Fatal(err)
	}
	before, _ := d.Build(n)
	_ = d.Close()
	after, _ := open(t, dir).Build(n)
	if diff := cmp.Diff(before, after); diff != "" || after.Running || !slices.Equal(after.Formats, []string{"raw"}) {
		t.Errorf("(-before +after):\n%s\n%+v", diff, after)
	}
}

func TestReclaimEndsWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	n := Name{"img", "0000000001"}
	w, err := d.Begin(n, filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Scratch().Make(); err != nil {
		t.Fatal(err)
	}
	write(t, w.Scratch().Dir, "image/raw")
	_ = d.Close()
	d = open(t, dir)
	if err := d.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Scratch().Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary folder: %v", err)
	}
	if b, ok := d.Build(n); !ok || b.Running {
		t.Errorf("reclaimed: %+v", b)
	}
}

// What an earlier release left lies under a name that another installation may
// have used since: it is swept once.
func TestReclaimSweepsAnEarlierReleaseOnce(t *testing.T) {
	dir, shared := t.TempDir(), t.TempDir()
	tmp := filepath.Join(shared, "poolkeeper-img-1")
	write(t, tmp, "image/raw")
	write(t, dir, ".poolkeeper/img-1/manifest.json", ".poolkeeper/img-1/tmp/x")
	text := `{"image":"img","build":"1","tmp_dir":"` + tmp + `","processes":{"guard":{"pid":0,"start":"","boot":""}},"done":false}`
	if err := os.WriteFile(filepath.Join(dir, ".poolkeeper/img-1/manifest.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if err := d.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := list(t, shared); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	write(t, tmp, "another's")
	if err := errors.Join(d.Reclaim(t.Context()), d.Remove(t.Context(), Name{"img", "1"}, absent(t, Name{"img", "1"}))); err != nil {
		t.Error(err)
	}
	if got := list(t, shared); len(got) != 1 {
		t.Errorf("in the shared folder: %v", got)
	}
	if got := list(t, dir); len(got) > 0 {
		t.Errorf("in the folder of images: %v", got)
	}
}

// A folder of images that was copied has the manifests of builds that go on
// elsewhere.
func TestACopyReclaimsNothing(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	d := open(t, dir)
	w, err := d.Begin(Name{"img", "1"}, filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Scratch().Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := open(t, copied).Reclaim(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.Scratch().Dir); err != nil {
		t.Errorf("the original's temporary folder: %v", err)
	}
	if err := d.Reclaim(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.Scratch().Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own: %v", err)
	}
}

// A folder that was given up is free, although a process that has not yet run its
// program still has its lock open.
func TestCloseGivesUpWhatAChildStillHas(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(d.lock.Fd())) // as fork does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenTidiesWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, ".poolkeeper/img-1/manifest.json.new", ".poolkeeper/img-2/manifest.json", ".poolkeeper/img-3/tmp/x")
	if err := os.Mkdir(filepath.Join(dir, ".poolkeeper/img-4"), 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	entries, err := os.ReadDir(filepath.Join(dir, ".poolkeeper"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"img-2", "img-3", "lock"}; err != nil || !cmp.Equal(names, want) {
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestRemoveTakesExactlyOneBuild(t *testing.T) {
	dir := t.TempDir()
	theirs := []string{"img-00000000011.raw", "img-x-0000000001.raw", "other-0000000001.raw", "img-0000000001", "img-0000000001x.raw"}
	write(t, dir, theirs...)
	d := open(t, dir)
	n := Name{"img", "0000000001"}
	if _, err := d.Begin(n, ""); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "img-0000000001.raw", "img-0000000001.raw.md5", "img-0000000001.qcow2-new", "img-0000000001.d/deep/er")
	if err := d.Remove(t.Context(), n, absent(t, n)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(theirs)
	if diff := cmp.Diff(theirs, list(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if _, ok := d.Build(n); ok {
		t.Error("it is still known")
	}
	if err := d.Remove(t.Context(), n, absent(t, n)); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestRemoveFormat(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "img-1.raw", "img-1.raw.md5", "img-1.raw.sha256", "img-1.qcow2")
	d := open(t, dir)
	proof := absent(t, Name{"img", "1"})
	for range 2 {
		if err := d.RemoveFormat(Name{"img", "1"}, "raw", proof); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, dir); !cmp.Equal(got, []string{"img-1.qcow2"}) {
		t.Errorf("left: %v", got)
	}
	if b, _ := d.Build(Name{"img", "1"}); !cmp.Equal(b.Formats, []string{"qcow2"}) {
		t.Errorf("known: %+v", b)
	}
}

func TestSum(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, size := range []int{0, 1, blockSize - 1, blockSize, 5*blockSize + 7} {
		text := strings.Repeat("x", size)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Sum(t.Context(), path)
		if err != nil || f.Size != int64(size) {
			t.Fatalf("%d bytes: %+v, %v", size, f, err)
		}
		if md5, sha := reference(text); f.MD5 != md5 || f.SHA256 != sha {
			t.Errorf("%d bytes: %+v", size, f)
		}
		if !f.Unchanged(path) {
			t.Errorf("%d bytes: changed?", size)
		}
	}
	if _, err := Sum(t.Context(), path+"x"); !errors.Is(err, ErrNoFile) {
		t.Errorf("missing: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := Sum(ctx, path); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSumComparesWithWhatLiesBesideIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	md5, sha := reference("text")
	for name, c := range map[string]struct {
		md5, sha string
		ok       bool
	}{
		"both":      {md5 + "  /elsewhere/f\n", strings.ToUpper(sha) + "\n", true},
		"bad md5":   {strings.Repeat("0", 32) + "  f\n", sha, false},
		"bad sha":   {md5, strings.Repeat("0", 64), false},
		"empty md5": {"", sha, false},
	} {
		t.Run(name, func(t *testing.T) {
			for file, text := range map[string]string{path: "text", path + ".md5": c.md5, path + ".sha256": c.sha} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Sum(t.Context(), path); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrChecksum) {
				t.Errorf("got %v", err)
			}
		})
	}
}
