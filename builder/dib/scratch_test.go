//go:build linux

package dib

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/test/tempdir"
)

// made is a scratch folder with something in it.
func made(t *testing.T) Scratch {
	t.Helper()
	s, err := NewScratch(tempdir.New(t), "poolkeeper-img-1", "builder")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Make(); err != nil {
		t.Fatal(err)
	}
	fill(t, s.Dir)
	return s
}

// fill puts a file into a folder, which is made when it is missing.
func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "image"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "image", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// living starts a process in a folder with an environment; alive reports whether
// it runs.
func living(t *testing.T, dir string, env ...string) (alive func() bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.Dir, cmd.Env = dir, append(env, "PATH="+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := newProcessID(cmd.Process.Pid)
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return func() bool {
		select {
		case <-ended:
			return false
		default:
			return id.alive()
		}
	}
}

func TestScratchIsNobodyElses(t *testing.T) {
	s := made(t)
	info, err := os.Lstat(s.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	other, err := NewScratch(filepath.Dir(s.Dir), "poolkeeper-img-1", "builder")
	if err != nil || other.Dir == s.Dir || other.Token == s.Token {
		t.Errorf("the name can be foretold: %+v, %+v, %v", s, other, err)
	}
	if err := s.Make(); !errors.Is(err, os.ErrExist) {
		t.Errorf("made again: %v", err)
	}
	if err := s.Sweep(t.Context()); err != nil || exists(s.Dir) {
		t.Errorf("swept: %v", err)
	}
}

// A builder may die at any moment while it makes the folder: what it leaves is swept.
// Catches: a marker that was not written to its end keeps the folder, and the build's
// files, for ever.
func TestSweepAfterADeathInMake(t *testing.T) {
	for name, size := range map[string]int{"no folder": -2, "no marker": -1, "empty marker": 0, "half a marker": 9} {
		t.Run(name, func(t *testing.T) {
			s, err := NewScratch(tempdir.New(t), "poolkeeper-img-1", "builder")
			if err != nil {
				t.Fatal(err)
			}
			if size > -2 {
				err = os.Mkdir(s.Dir, 0o700)
			}
			if err == nil && size > -1 {
				err = os.WriteFile(filepath.Join(s.Dir, markerFile), []byte(s.mark()[:size]), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Sweep(t.Context()); err != nil || exists(s.Dir) {
				t.Errorf("swept: %v, there: %v", err, exists(s.Dir))
			}
		})
	}
	s := made(t) // with a file, so that somebody has built in it
	if err := os.Truncate(filepath.Join(s.Dir, markerFile), 9); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err == nil || !exists(filepath.Join(s.Dir, "image", "file")) {
		t.Errorf("a folder without its mark was swept: %v", err)
	}
}

// Who can write to the folder above may put something else in its place.
func TestSweepTouchesOnlyWhatTheBuildMade(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, s Scratch, precious string){
		"a link": func(t *testing.T, s Scratch, precious string) {
			t.Helper()
			if err := os.Symlink(precious, s.Dir); err != nil {
				t.Fatal(err)
			}
		},
		"a link above": func(t *testing.T, s Scratch, precious string) {
			t.Helper()
			if err := errors.Join(os.Rename(filepath.Dir(s.Dir), filepath.Dir(s.Dir)+".old"),
				os.Rename(precious, filepath.Join(filepath.Dir(precious), filepath.Base(s.Dir))),
				os.Symlink(filepath.Dir(precious), filepath.Dir(s.Dir)),
				os.Symlink(filepath.Base(s.Dir), precious)); err != nil {
				t.Fatal(err)
			}
		},
		"a folder without a mark": func(t *testing.T, s Scratch, precious string) {
			t.Helper()
			if err := errors.Join(os.Rename(precious, s.Dir), os.Symlink(s.Dir, precious)); err != nil {
				t.Fatal(err)
			}
		},
		"a folder of another user": func(t *testing.T, s Scratch, precious string) {
			t.Helper()
			needRoot(t)
			marker, err := os.ReadFile(filepath.Join(s.Dir+".old", markerFile))
			if err := errors.Join(err, os.Rename(precious, s.Dir), os.Symlink(s.Dir, precious),
				os.WriteFile(filepath.Join(s.Dir, markerFile), marker, 0o600), os.Chown(s.Dir, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(t)
			if name != "a link above" {
				if err := os.Rename(s.Dir, s.Dir+".old"); err != nil {
					t.Fatal(err)
				}
			}
			precious := filepath.Join(tempdir.New(t), "precious")
			fill(t, precious)
			replace(t, s, precious)
			alive := living(t, precious)
			err := s.Sweep(t.Context())
			if !errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), "nothing in it was touched") {
				t.Errorf("got %v", err)
			}
			if !alive() || !exists(filepath.Join(precious, "image", "file")) {
				t.Errorf("a process lives: %v; the file is there: %v", alive(), exists(filepath.Join(precious, "image", "file")))
			}
		})
	}
}

func TestSweepKillsOnlyWhatIsOfTheBuild(t *testing.T) {
	s := made(t)
	token := tokenVariable + "=" + s.Token
	operator, ours, child := living(t, s.Dir), living(t, "/", token), living(t, s.Dir, "X="+token, "TMP_DIR="+s.Dir)
	err := s.Sweep(t.Context())
	if !errors.Is(err, ErrLeft) || !strings.Contains(err.Error(), "do not prove to be of the build") || exists(s.Dir) {
		t.Errorf("got %v; the folder is there: %v", err, exists(s.Dir))
	}
	eventually(t, "ours has ended", func() bool { return !ours() })
	if !operator() || !child() {
		t.Errorf("an operator's process lives: %v, one with a similar environment: %v", operator(), child())
	}
}

// What earlier releases left has no mark: folder and files name its build.
func TestSweepOfAnEarlierRelease(t *testing.T) {
	for name, c := range map[string]struct {
		base  string // of the process that works in the folder
		swept bool
	}{"ours": {"/images/img-1", true}, "another installation's": {"/other/img-1", false}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(tempdir.New(t), "poolkeeper-img-1")
			fill(t, dir)
			alive := living(t, "/", "TMP_DIR="+dir, "DIB_IMAGE_FILENAME="+c.base)
			err := LegacyScratch(dir, "/images/img-1").Sweep(t.Context())
			if (err == nil) != c.swept || exists(dir) == c.swept {
				t.Errorf("got %v; the folder is there: %v", err, exists(dir))
			}
			if c.swept {
				eventually(t, "the process has ended", func() bool { return !alive() })
			} else if !alive() {
				t.Error("the process was killed")
			}
		})
	}
}
