package dib

import (
	"slices"
	"testing"
)

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a`: "/a", `/a\040b\134c`: `/a b\c`, `/a\04`: `/a\04`, `/a\xyz`: `/a\xyz`} {
		if got := unescape(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

// The list is read from /proc, so /proc is mounted. Our root need not be: in a
// chroot it is a folder like any other.
func TestMountsHereHaveProc(t *testing.T) {
	all, err := readMounts()
	if err != nil || !slices.ContainsFunc(all, func(m mount) bool { return m.point == "/proc" && m.source != "" }) {
		t.Errorf("got %d mounts, %v: %v", len(all), err, all)
	}
}

func TestSweepableRefusesWhatIsNoBuilds(t *testing.T) {
	for dir, ok := range map[string]bool{"/": false, "/tmp": false, "": false, "a/b/c": false, "/a/../b": false, "/srv/img/.poolkeeper/a-1/tmp": true} {
		if err := (Scratch{Dir: dir}).sweepable(); (err == nil) != ok {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
