package buildlog

import (
	"os"
	"path/filepath"
	"regexp"
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
			if err := Prune(dir, "img", c.keep); err != nil {
				t.Fatal(err)
			}
			var gone []string
			for _, file := range files {
				if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
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
		"Exit code: 137\n":              "", // of a command that failed without a word: no reason to end the daemon
		"+ exit 1\nExit code: 1\n":      "",
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

// A tail begins before a traceback or behind its frames, in logs of real failures.
func TestTailHasWholeTracebacks(t *testing.T) {
	const header = "Traceback (most recent call last):"
	frames := regexp.MustCompile(`^\S+ \S+ \|\s{2,}`)
	cut := 0
	for _, name := range []string{"fs-type", "journal", "missing-element", "mkfs", "no-space"} {
		for lines := 3; lines <= 40; lines++ {
			for _, size := range []int{1 << 10, 4 << 10} {
				tail, err := Tail(filepath.Join("testdata", "failures", name+".log"), lines, size)
				if err != nil {
					t.Fatal(err)
				}
				if first, _, _ := strings.Cut(tail, "\n"); frames.MatchString(first) {
					cut++
					t.Errorf("%s, %d lines of %d bytes: begins with %q", name, lines, size, first)
				}
				if len(tail) > size {
					t.Errorf("%s, %d lines of %d bytes: has %d", name, lines, size, len(tail))
				}
			}
		}
	}
	if cut > 0 {
		t.Errorf("%d tails begin inside a traceback", cut)
	}
	if tail, err := Tail(filepath.Join("testdata", "failures", "mkfs.log"), 20, 4<<10); err != nil || !strings.Contains(tail, header) {
		t.Errorf("it has room for the traceback and begins with %q, %v", strings.SplitN(tail, "\n", 2)[0], err)
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
