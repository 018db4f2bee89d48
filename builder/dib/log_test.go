package dib

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPruneLogsByExactName(t *testing.T) {
	files := []string{ // the oldest first
		"img-0000000001.log", "img-5446a9b04ed29e48.log", "img-0000000003.log", "img-0000000004.log",
		"img-arm-0000000001.log", "img.log", "img-notes.log", "other-0000000001.log", "img-0000000001.txt",
	}
	for name, c := range map[string]struct {
		keep int
		gone []string
	}{
		"two":      {2, files[:2]},
		"zero":     {0, files[:3]}, // acts as one
		"negative": {-1, nil},
		"many":     {10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, file := range files {
				path := filepath.Join(dir, file)
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				at := time.Unix(int64(1e9+i), 0)
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			if err := PruneLogs(dir, "img", c.keep); err != nil {
				t.Fatal(err)
			}
			var gone []string
			for _, file := range files {
				if !exists(filepath.Join(dir, file)) {
					gone = append(gone, file)
				}
			}
			if diff := cmp.Diff(c.gone, gone); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for text, want := range map[string]string{
		"":                              "",
		"a\nb\nc\n":                     "b\nc",
		"a\nb\nExit code: 1\n":          "a\nb",
		"a":                             "a",
		"\xff\xfe bad\n":                "\uFFFD bad",
		strings.Repeat("x", 90) + "\ny": "y",
		strings.Repeat("x", 90):         strings.Repeat("x", 64),

		"2026-11-20 09:47:15.3 | head: No space left\n2026-11-20 09:47:15.4 | + cleanup\n++ rm -rf x\n": "2026-11-20 09:47:15.3 | head: No space left",
		"why\n" + strings.Repeat("+ clean up\n", 4000) + "Exit code: 1\n":                               "why",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Tail(file, 2, 64); err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := Tail(file+"x", 2, 64); err == nil {
		t.Error("no error for a missing log")
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a`: "/a", `/a\040b\134c`: `/a b\c`, `/a\04`: `/a\04`, `/a\xyz`: `/a\xyz`} {
		if got := unescape(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestMountsHereHaveOurRoot(t *testing.T) {
	all, err := readMounts()
	if err != nil || !slices.ContainsFunc(all, func(m mount) bool { return m.point == "/" }) {
		t.Errorf("got %d mounts, %v", len(all), err)
	}
}

func TestSweepableRefusesWhatIsNoBuilds(t *testing.T) {
	for dir, ok := range map[string]bool{"/": false, "/tmp": false, "": false, "a/b/c": false, "/a/../b": false, "/srv/img/.poolkeeper/a-1/tmp": true} {
		if err := sweepable(dir); (err == nil) != ok {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

func TestPhases(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := `2026-11-20 10:56:00.242 | dib-run-parts Running /tmp/x/hooks/root.d/10-files-only
2026-11-20 10:56:00.288 | dib-run-parts ----------------------- PROFILING -----------------------
2026-11-20 10:56:00.288 | dib-run-parts 
2026-11-20 10:56:00.290 | dib-run-parts Target: root.d
2026-11-20 10:56:00.292 | dib-run-parts 
2026-11-20 10:56:00.292 | dib-run-parts Script                                     Seconds
2026-11-20 10:56:00.292 | dib-run-parts ---------------------------------------  ----------
2026-11-20 10:56:00.333 | dib-run-parts 08-yum                                        1.5
2026-11-20 10:56:00.333 | dib-run-parts 10-files-only                                 0.042
2026-11-20 10:56:00.335 | dib-run-parts --------------------- END PROFILING ---------------------
2026-11-20 10:56:01.335 | dib-run-parts stray 9
2026-11-20 10:56:02.290 | dib-run-parts Target: install.d
2026-11-20 10:56:02.333 | dib-run-parts 10-x 2
`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Phases(log)
	if diff := cmp.Diff(map[string]float64{"root.d": 1.542, "install.d": 2}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Phases(log + "x"); err == nil {
		t.Error("no error for a missing log")
	}
}
