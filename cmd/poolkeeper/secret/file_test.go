package secret

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/configs/sealed"
	"poolkeeper/test/ptytest"
)

// A file that somebody else has written meanwhile is left as it is.
func TestSecretFileThatChanged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(name, []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := readFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("a: other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.write([]byte("a: ours\n")); !errors.Is(err, errChanged) {
		t.Errorf("write = %v", err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "a: other\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// A file that is replaced keeps owner, group and mode, and the link that leads to it: the
// daemons' user must still be able to read it, and others still not.
func TestReplacedFileStaysItsOwners(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "link.yaml")
	if err := errors.Join(os.WriteFile(name, []byte("a: b\n"), 0o600), os.Chmod(name, 0o640), os.Symlink("a.yaml", link)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(name, 4711, 4712); err != nil {
			t.Fatal(err)
		}
	}
	var before, after unix.Stat_t
	if err := unix.Stat(name, &before); err != nil {
		t.Fatal(err)
	}
	f, err := readFile(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write([]byte("a: c\n")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(name, &after); err != nil {
		t.Fatal(err)
	}
	if after.Uid != before.Uid || after.Gid != before.Gid || after.Mode != before.Mode || after.Ino == before.Ino {
		t.Errorf("was %+v, is %+v", before, after)
	}
	if to, err := os.Readlink(link); err != nil || to != "a.yaml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A rotation that ends in the middle has lost nothing: the key is written first, and opens
// what is sealed anew and what is not.
func TestInterruptedRotation(t *testing.T) {
	dir := t.TempDir()
	keys, err := sealed.New(filepath.Join(dir, "fleet.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys.File(), keys.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		text, err := sealed.Seal(keys.Recipients()[0], "x.y", "word of "+name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(dir, name+".yaml"))
		if err := os.WriteFile(names[len(names)-1], []byte("x: {y: "+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opens := func(want int) {
		t.Helper()
		now, err := sealed.Read(keys.File())
		if err != nil {
			t.Fatal(err)
		}
		newest := 0
		for _, name := range names {
			f, err := readFile(name)
			if err != nil {
				t.Fatal(err)
			}
			value := f.values()[0]
			if got, err := now.Open(value.Value, "x.y"); err != nil || !strings.HasPrefix(got, "word of ") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if sealed.Recipient(value.Value) == now.Recipients()[0] {
				newest++
			}
		}
		if newest != want {
			t.Errorf("%d files are sealed to the newest key, want %d", newest, want)
		}
	}
	files, err := readFiles(names)
	if err != nil {
		t.Fatal(err)
	}
	next, err := keys.WithNew()
	if err != nil {
		t.Fatal(err)
	}
	anew, err := prepare(files, keys, next.Recipients()[0])
	if err != nil {
		t.Fatal(err)
	}
	opens(3)
	if err := writeKeys(keys, next); err != nil {
		t.Fatal(err)
	}
	opens(0)
	files[1].text = nil // as if it had changed
	if err := anew.write(&App{Stdout: io.Discard}); !errors.Is(err, errChanged) {
		t.Errorf("write = %v", err)
	}
	opens(1)
	a := &App{Config: "none", Stdout: io.Discard, Stderr: io.Discard}
	if err := (ResealCmd{Files: names, DropOld: true, Force: true}).Run(t.Context(), a, &Cmd{Key: keys.File()}); err != nil {
		t.Fatal(err)
	}
	opens(3)
	if now, err := sealed.Read(keys.File()); err != nil || len(now.Recipients()) != 1 {
		t.Errorf("keys %v, %v", now.Recipients(), err)
	}
}

// A value that is typed does not show on the terminal, which echoes again afterwards.
func TestTypedValueDoesNotShow(t *testing.T) {
	master, terminal := ptytest.Open(t, 80, 24)
	shown := make(chan []byte, 100)
	go func() {
		for {
			part := make([]byte, 100)
			n, err := master.Read(part)
			if err != nil {
				close(shown)
				return
			}
			shown <- part[:n]
		}
	}()
	var screen bytes.Buffer
	until := func(text string) {
		t.Helper()
		for deadline := time.After(10 * time.Second); !strings.Contains(screen.String(), text); {
			select {
			case part := <-shown:
				screen.Write(part)
			case <-deadline:
				t.Fatalf("the terminal does not show %q: %q", text, screen.String())
			}
		}
	}
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readHidden(t.Context(), terminal, terminal, "Value: ")
		done <- result{text, err}
	}()
	until("Value: ")
	if _, err := io.WriteString(master, "hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.err != nil || r.text != "hunter2\n" {
		t.Errorf("read %q, %v", r.text, r.err)
	}
	if _, err := io.WriteString(master, "visible\n"); err != nil {
		t.Fatal(err)
	}
	until("visible")
	if strings.Contains(screen.String(), "hunter2") {
		t.Errorf("the terminal shows %q", screen.String())
	}
}
