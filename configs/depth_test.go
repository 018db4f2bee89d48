package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file with images nested thousands deep is rejected with a clear error, not worked on for minutes; one hundred are accepted.
func TestNestedParentsAreBounded(t *testing.T) {
	load := func(depth int) error {
		var text strings.Builder
		text.WriteString("zookeeper-servers: [{host: 127.0.0.1}]\nlabels: []\ndiskimages:\n  - {name: i0, elements: [base]}\n")
		for n := range depth {
			fmt.Fprintf(&text, "  - {name: i%d, parent: i%d, elements: [e%d], env-vars: {V%d: x}}\n", n+1, n, n, n)
		}
		file := filepath.Join(t.TempDir(), "nodepool.yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, Options{})
		return err
	}
	if err := load(maxParents); err != nil {
		t.Errorf("%d parents: %v", maxParents, err)
	}
	if err := load(maxParents + 1); err == nil || !strings.Contains(err.Error(), "diskimages[i101]: it has more than 100 parents") {
		t.Errorf("%d parents: %v", maxParents+1, err)
	}
}
