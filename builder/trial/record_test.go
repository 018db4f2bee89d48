package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
)

// A script goes to its node as it is, or not at all. Mistake: one that is no UTF-8 is changed
// by the JSON of its record, and then fails on every node.
func TestScriptsAreText(t *testing.T) {
	dir := t.TempDir()
	cfg := &configs.Config{ElementsDir: dir}
	for name, text := range map[string]string{"good": "#!/bin/sh\necho Größe\n", "bad": "\x7fELF\xff\xfe\x80"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := script(cfg, "good"); err != nil || text != "#!/bin/sh\necho Größe\n" {
		t.Errorf("good: %q, %v", text, err)
	}
	if _, err := script(cfg, "bad"); err == nil || !strings.Contains(err.Error(), "not text in UTF-8") {
		t.Errorf("bad: %v", err)
	}
}
