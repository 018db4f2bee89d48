package dispatch_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"poolkeeper/test/zktest"
)

// Mistake: an event behind half of a line, which nobody can read: of a disk that was full, or
// of a host that fell.
func TestHalfALineTakesNoEventAlong(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte(`{"specversion":"1.0","id":"1-`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, root, "one", options(file(dir, "a")), quick)
	d.tell(t, 3)
	whole := func() (n int) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if json.Valid(line) {
				n++
			}
		}
		return n
	}
	zktest.Eventually(t, func() bool { return whole() == 3 }, "all three can be read")
}
