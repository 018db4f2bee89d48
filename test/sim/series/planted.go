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

// FindPlanted compiles the package of a world with the mistakes that are made on purpose (configs/planted), and
// without the race detector, and runs a test of it with each: within some seeds, from one on that has found all of them, the judge has to say
// what is wrong, in words that fit a pattern. How goroutines are scheduled is not decided by a seed, so one is not enough.
// Where the tests have the race detector, the same program has to find nothing in the fixed seeds when no mistake is made.
func FindPlanted(t *testing.T, test string, from uint64, seeds int, planted map[string]string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the program once more")
	}
	program := filepath.Join(t.TempDir(), "planted")
	build := exec.CommandContext(t.Context(), "go", "test", "-tags", "planted", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	simulate := func(t *testing.T, bug string, args ...string) ([]byte, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"-test.v", "-test.run", "^" + test + "$", "-test.timeout", "20m"}, args...)...)
		// One thread, and little looking for garbage: half of the processor time, see test/sim/replay.
		cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug, "GOMAXPROCS=1", "GOGC=1000", "GOMEMLIMIT=800MiB")
		return cmd.CombinedOutput()
	}
	if raced {
		t.Run("none is made", func(t *testing.T) {
			t.Parallel()
			out, err := simulate(t, "")
			if err != nil {
				t.Errorf("%v", err)
			}
			t.Logf("%s", out)
		})
	}
	for bug, words := range planted {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			out, err := simulate(t, bug, "-sim.seed", strconv.FormatUint(from, 10), "-sim.count", strconv.Itoa(seeds))
			line := regexp.MustCompile("WRONG.*(" + words + ")").Find(out) // what led up to it may have the words, too
			if err == nil || line == nil {
				t.Fatalf("not found: %v, %s", err, out)
			}
			t.Logf("%s", line)
		})
	}
}
