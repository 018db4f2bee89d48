//go:build linux

package dib

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// A name may hold all that ends a field, and more brackets.
func TestProcessIsToldFromItsName(t *testing.T) {
	const rest = " S 41 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 998877 2 3\n"
	for _, name := range []string{"sh", "a b", "x) S 1 1", "((", ")\n)"} {
		got, err := parseProcess(7, []byte("7 ("+name+")"+rest))
		if want := (process{pid: 7, parent: 41, start: "998877"}); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, stat := range []string{"", "7 (sh)", "7 (sh) S 41 7", "7 (sh) S parent 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 998877"} {
		if got, err := parseProcess(7, []byte(stat)); !errors.Is(err, errStat) {
			t.Errorf("%q: %+v, %v", stat, got, err)
		}
	}
}

// The kernel's own line reads as another reader reads it.
func TestProcessIsWhatTheKernelSays(t *testing.T) {
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := self.Stat()
	if err != nil {
		t.Fatal(err)
	}
	want := process{pid: os.Getpid(), parent: stat.PPID, start: strconv.FormatUint(stat.Starttime, 10)}
	if got, err := readProcess(os.Getpid()); err != nil || got != want {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
}
