package secret

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs/sealed"
)

// secretSite is a folder with a key file and sealed values.
type secretSite struct {
	t     *testing.T
	dir   string
	key   string
	files []string
}

// newSecretSite makes a key and files, each with one value at x.y: "word of FILE".
func newSecretSite(t *testing.T, names ...string) *secretSite {
	t.Helper()
	s := &secretSite{t: t, dir: t.TempDir()}
	s.key = filepath.Join(s.dir, "fleet.key")
	keys, err := sealed.New(s.key)
	if err != nil {
		t.Fatal(err)
	}
	s.write(s.key, string(keys.Bytes()))
	for _, name := range names {
		text, err := sealed.Seal(keys.Recipients()[0], "x.y", "word of "+name)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, filepath.Join(s.dir, name))
		s.write(s.files[len(s.files)-1], "x: {y: "+text+"}\n")
	}
	return s
}

func (s *secretSite) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *secretSite) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// app is what commands of the site share.
func (s *secretSite) app() *App {
	return &App{Config: filepath.Join(s.dir, "none"), Stdin: strings.NewReader("a value"), Stdout: io.Discard, Stderr: io.Discard}
}

// opens fails for each value of files that the key file does not open.
func (s *secretSite) opens(want int) {
	s.t.Helper()
	keys, err := sealed.Read(s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	files, err := readFiles(s.files)
	if err != nil {
		s.t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		for _, value := range f.values() {
			if _, err := keys.Open(value.Value, value.Path.String()); err != nil {
				s.t.Errorf("%s: %s: %v", f.name, value.Path, err)
				continue
			}
			count++
		}
	}
	if count != want {
		s.t.Errorf("%d values open, want %d", count, want)
	}
}

// tells is a writer that sends what is written.
type tells chan string

func (c tells) Write(text []byte) (int, error) {
	c <- string(text)
	return len(text), nil
}

// atOnce runs one command up to where it has read all and written nothing, another as far as it
// comes, and then the first one to its end.
func (s *secretSite) atOnce(first, second func(*App) error) {
	s.t.Helper()
	one, two := s.app(), s.app()
	ready, goOn := make(chan struct{}), make(chan struct{})
	one.prepared = func() { close(ready); <-goOn }
	waits := make(tells, 10)
	two.Stderr = waits
	ended := make(chan error, 1)
	go func() { ended <- first(one) }()
	select {
	case <-ready:
	case err := <-ended:
		s.t.Fatalf("the first one ended: %v", err)
	}
	other := make(chan error, 1)
	go func() { other <- second(two) }()
	select {
	case text := <-waits:
		if !strings.Contains(text, "waiting for another command") || !strings.Contains(text, s.dir) {
			s.t.Errorf("the second one says %q", text)
		}
	case err := <-other:
		s.t.Errorf("the second one did not wait: %v", err)
		other <- err
	}
	close(goOn)
	for i, err := range []error{<-ended, <-other} {
		if err != nil {
			s.t.Errorf("command %d: %v", i+1, err)
		}
	}
}

// Commands that change files wait for each other. Without that, the key of one of two
// rotations was lost, and with it all that was sealed to it; of values that were set at once
// only the last one was there.
func TestSecretCommandsAtOnce(t *testing.T) {
	of := func(s *secretSite) *Cmd { return &Cmd{Key: s.key} }
	rotate := func(s *secretSite) func(*App) error {
		return func(a *App) error { return RotateCmd{Files: s.files}.Run(t.Context(), a, of(s)) }
	}
	set := func(s *secretSite, path string) func(*App) error {
		return func(a *App) error {
			return (&SetCmd{File: s.files[0], Path: path}).Run(t.Context(), a, of(s))
		}
	}
	drop := func(s *secretSite) func(*App) error {
		return func(a *App) error {
			return ResealCmd{Files: s.files, DropOld: true, Force: true}.Run(t.Context(), a, of(s))
		}
	}
	for name, run := range map[string]func(*testing.T, *secretSite) (values, keys int){
		"two rotations": func(_ *testing.T, s *secretSite) (int, int) {
			s.atOnce(rotate(s), rotate(s))
			return 2, 3
		},
		"an end beside a rotation": func(t *testing.T, s *secretSite) (int, int) {
			t.Helper()
			if err := rotate(s)(s.app()); err != nil {
				t.Fatal(err)
			}
			s.atOnce(rotate(s), drop(s))
			return 2, 1
		},
		"a rotation beside an end": func(t *testing.T, s *secretSite) (int, int) {
			t.Helper()
			if err := rotate(s)(s.app()); err != nil {
				t.Fatal(err)
			}
			s.atOnce(drop(s), rotate(s))
			return 2, 2
		},
		"two values": func(_ *testing.T, s *secretSite) (int, int) {
			s.atOnce(set(s, "x.one"), set(s, "x.two"))
			return 4, 1
		},
		"a value beside a rotation": func(_ *testing.T, s *secretSite) (int, int) {
			s.atOnce(rotate(s), set(s, "x.one"))
			return 3, 2
		},
		"a value beside an end": func(t *testing.T, s *secretSite) (int, int) {
			t.Helper()
			if err := rotate(s)(s.app()); err != nil {
				t.Fatal(err)
			}
			s.atOnce(drop(s), set(s, "x.one"))
			return 3, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecretSite(t, "a.yaml", "b.yaml")
			values, count := run(t, s)
			s.opens(values)
			if keys, err := sealed.Read(s.key); err != nil || len(keys.Recipients()) != count {
				t.Errorf("%d keys, %v, want %d", len(keys.Recipients()), err, count)
			}
			if left, err := os.ReadDir(s.dir); err != nil || len(left) != 3 {
				t.Errorf("in the folder are %v, %v", left, err)
			}
		})
	}
}

// A key file that changed while a command worked, say by a copy from another host, is left as
// it is: to write ours over it would lose its key.
func TestKeyFileThatChanged(t *testing.T) {
	for name, run := range map[string]func(*secretSite, *App) error{
		"rotate": func(s *secretSite, a *App) error {
			return RotateCmd{Files: s.files}.Run(t.Context(), a, &Cmd{Key: s.key})
		},
		"drop": func(s *secretSite, a *App) error {
			return ResealCmd{Files: s.files, DropOld: true, Force: true}.Run(t.Context(), a, &Cmd{Key: s.key})
		},
	} {
		s := newSecretSite(t, "a.yaml")
		want := s.read(newSecretSite(t).key) + s.read(s.key)
		a := s.app()
		a.prepared = func() { s.write(s.key, want) }
		if err := run(s, a); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), s.key) {
			t.Errorf("%s: %v", name, err)
		}
		if s.read(s.key) != want {
			t.Errorf("%s: the key file was replaced", name)
		}
		s.opens(1)
	}
}
