//go:build linux

package dib

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"poolkeeper/test/tempdir"
)

// Catches: a mount that stays, and whose files a sweep then removes, because its name
// is written with escapes in the kernel's list, or its source is empty.
func TestMountsOfOddNames(t *testing.T) {
	needRoot(t)
	dir := tempdir.New(t)
	var want []string
	for _, name := range []string{`a b`, `a b/c\d#e`, "a b/c\\d#e/f\ng", `\040`, "ü - x"} {
		point := filepath.Join(dir, name)
		if err := os.MkdirAll(point, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("", point, "tmpfs", 0, "size=16k"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(point, unix.MNT_DETACH) })
		want = append(want, point)
	}
	got, err := mountsOf(dir, nil)
	slices.Sort(got)
	if slices.Sort(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("mounts %q, %v; want %q", got, err, want)
	}
	if _, err := detach(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if left, err := mountsOf(dir, nil); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Catches: facts of another field, when a program's name looks like the fields behind
// it. With a wrong parent a build's process is not killed, with a wrong start a guard is
// held for dead.
func TestProcessOfAnOddName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(tempdir.New(t), ") R 1 2 (3")
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), odd, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
	if err != nil || !strings.Contains(string(text), odd[len(odd)-10:]) {
		t.Fatalf("%s, %v", text, err)
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	want := process{pid: cmd.Process.Pid, parent: os.Getpid(), start: fields[19]} // of proc_pid_stat(5), 22
	if got, err := readProcess(cmd.Process.Pid); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if all := processes(); !slices.Contains(all, want) {
		t.Errorf("not among %d processes", len(all))
	}
	if _, err := readProcess(1 << 30); err == nil {
		t.Error("a process that is none was read")
	}
}

func TestSweepableRefusesWhatIsNoBuilds(t *testing.T) {
	for dir, ok := range map[string]bool{"/": false, "/tmp": false, "": false, "a/b/c": false, "/a/../b": false, "/srv/img/.poolkeeper/a-1/tmp": true} {
		if err := (Scratch{Dir: dir}).sweepable(); (err == nil) != ok {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
