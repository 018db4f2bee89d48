package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The highest number of a build is remembered of each image, across restarts, also where another made it. Mistakes: a
// lower one in its place; one image's for another's; names of another make, or that ZooKeeper cannot
// have given, which would keep the true ones from being noted; a file that says nothing ends all; one that cannot be
// read for a moment counts as none.
func TestNumbersAreRemembered(t *testing.T) {
	dir := t.TempDir()
	open := func() *Images {
		t.Helper()
		d, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open()
	for _, n := range []Name{
		{"debian", "0000000002"},
		{"debian", "0000000010"},
		{"debian", "0000000009"},
		{"debian", "8c5fa96d4e"},
		{"debian", "99999999999"},
		{"debian", "9999999999"},
		{"debian", "2147483648"},
		{"alpine", "2147483648"},
		{"last", "2147483647"},
		{"fedora", "0000000003"},
	} {
		if err := d.Seen(n); err != nil {
			t.Fatal(err)
		}
	}
	// Many are written at once.
	if err := d.Seen(Name{"many", "0000000003"}, Name{"other", "0000000001"}, Name{"many", "0000000005"}, Name{"many", "0000000004"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for image, want := range map[string]string{"debian": "0000000010", "fedora": "0000000003", "alpine": "", "last": "2147483647", "many": "0000000005", "other": "0000000001"} {
			if got, err := d.Newest(image); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", image, got, err, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open()
	}
	_ = d.Close()
	file := filepath.Join(dir, ownDir, numbersFile)
	for _, text := range []string{"null", "", "[]", `{"debian": "9999999999"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d = open()
		if got, err := d.Newest("debian"); got != "" || err != nil {
			t.Errorf("of %q: %q, %v", text, got, err)
		}
		err := d.Seen(Name{"debian", "0000000001"})
		if got, _ := d.Newest("debian"); err != nil || got != "0000000001" {
			t.Errorf("after %q: %q, %v", text, got, err)
		}
		_ = d.Close()
	}
	d = open() // which tidies up
	defer func() { _ = d.Close() }()
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Newest("debian"); err == nil {
		t.Errorf("of what cannot be read: %q", got)
	}
	if err := d.Seen(Name{"debian", "0000000001"}); err == nil {
		t.Error("what cannot be read was begun anew")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Newest("debian"); got != "" || err != nil {
		t.Errorf("of no file: %q, %v", got, err)
	}
}
