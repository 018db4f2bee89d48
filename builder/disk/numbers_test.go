package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// The highest number of a build is remembered of each image, across restarts, whoever made it. Mistakes: a
// lower one in its place; one image's for another's; names of another make; a file that cannot be read ends all.
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
		{"fedora", "0000000003"},
	} {
		if err := d.Seen(n); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for image, want := range map[string]string{"debian": "0000000010", "fedora": "0000000003", "alpine": ""} {
			if got := d.Newest(image); got != want {
				t.Errorf("%s: %q, want %q", image, got, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open()
	}
	_ = d.Close()
	if err := os.WriteFile(filepath.Join(dir, ownDir, numbersFile), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	d = open()
	defer func() { _ = d.Close() }()
	if got := d.Newest("debian"); got != "" {
		t.Errorf("of a file that says nothing: %q", got)
	}
	if err := d.Seen(Name{"debian", "0000000001"}); err != nil || d.Newest("debian") != "0000000001" {
		t.Errorf("afterwards %q, %v", d.Newest("debian"), err)
	}
}
