package request

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every line of the log that names a request names Zuul's event, too, as far as the request is
// there. Mistake: a search for the event of a change that misses what became of its node.
func TestLinesNameTheEvent(t *testing.T) {
	line, ofNode := regexp.MustCompile(`"request", [^"]`), regexp.MustCompile(`\.Log\.(Info|Warn|Error)\(.*"node", n\.ID`)
	found := 0
	for _, pattern := range []string{"../*.go", "../*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for n, one := range strings.Split(string(text), "\n") {
				// The reaper's lines name a node's request by Reaper.of, but where there can be none.
				if strings.Contains(file, "reaper") && ofNode.MatchString(one) && !strings.Contains(one, "Record of a node without a provider") {
					t.Errorf("%s:%d: %s", file, n+1, strings.TrimSpace(one))
				}
				// A request for a backing node is a launcher's own: there is no event of Zuul's.
				if strings.Contains(file, "/backing/") || !line.MatchString(one) || strings.Contains(one, "Key{") || strings.HasSuffix(file, "_test.go") || strings.Contains(one, `log := r.Log.With("request"`) {
					continue
				}
				found++
				if !strings.Contains(one, `"event", `) {
					t.Errorf("%s:%d: %s", file, n+1, strings.TrimSpace(one))
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d lines name a request", found)
	}
}
