//go:build !wasip1

package builders

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// planted are the mistakes that are compiled in on purpose, and what the judge says of each.
var planted = map[string]string{
	"deadline": "beside",                      // a guard that ignores its lease, so that builds go on when their lock is lost
	"upload":   "has no record",               // an image is made before its record says so
	"keep":     "takes the last ready upload", // none is kept but the newest
	"reuse":    "is used a second time",       // after a backup was restored
}

// Mistake: a simulation that finds nothing.
func TestPlantedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the program once more")
	}
	program := filepath.Join(t.TempDir(), "planted")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-tags", "planted", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for bug, wrong := range planted {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestBuilders$", "-test.timeout", "20m", "-sim.count", "20")
			cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug)
			out, err := cmd.CombinedOutput()
			line := regexp.MustCompile("WRONG.*(" + wrong + ")").Find(out) // what led up to it may have the words, too
			if err == nil || line == nil {
				t.Fatalf("not found: %v, %s", err, out)
			}
			t.Logf("%s", line)
		})
	}
}
