package sim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// planted are the mistakes that are compiled in on purpose, and from which seed on they are
// looked for. The seeds after it follow: how goroutines are scheduled is not decided by them.
var planted = map[string]string{
	"lease": "1", // a lock is kept after its session expired
	"order": "1", // two hold one lock
	"fence": "1", // who has lost a lock goes on writing
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
	for bug, seed := range planted {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestLocks$", "-test.timeout", "5m", "-sim.seed", seed, "-sim.count", "100")
			cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if at := strings.Index(text, "WRONG"); err == nil || at < 0 {
				t.Errorf("not found: %v, %s", err, text)
			} else {
				line, _, _ := strings.Cut(text[at:], "\n")
				t.Log(line)
			}
		})
	}
}
