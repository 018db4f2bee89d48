//go:build !wasip1

package builders

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// planted are the mistakes that are compiled in on purpose, and from which seed on they are
// looked for: the first seeds find each.
var planted = map[string]string{
	"deadline": "beside", // a guard that ignores its lease, so that builds go on when their lock is lost
	"upload":   "has no record",
	"keep":     "takes the last ready upload",
	"reuse":    "is used a second time", // after a backup was restored
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
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestBuilders$", "-test.timeout", "5m", "-sim.count", "20")
			cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if at := strings.Index(text, "WRONG"); err == nil || at < 0 || !strings.Contains(text, wrong) {
				t.Errorf("not found: %v, %s", err, text)
			} else {
				line, _, _ := strings.Cut(text[at:], "\n")
				t.Log(line)
			}
		})
	}
}
