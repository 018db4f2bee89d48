//go:build !wasip1

package series

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// FindPlanted compiles the package of a world with the mistakes that are made on purpose (configs/planted),
// and runs a test of it with each: within some seeds, from the first on, the judge has to say what is wrong,
// in words that fit a pattern. How goroutines are scheduled is not decided by a seed, so one is not enough.
func FindPlanted(t *testing.T, test string, seeds int, planted map[string]string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the program once more")
	}
	program := filepath.Join(t.TempDir(), "planted")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-tags", "planted", "-c", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for bug, words := range planted {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+test+"$", "-test.timeout", "20m", "-sim.count", strconv.Itoa(seeds))
			cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug, "GOGC=400")
			out, err := cmd.CombinedOutput()
			line := regexp.MustCompile("WRONG.*(" + words + ")").Find(out) // what led up to it may have the words, too
			if err == nil || line == nil {
				t.Fatalf("not found: %v, %s", err, out)
			}
			t.Logf("%s", line)
		})
	}
}
