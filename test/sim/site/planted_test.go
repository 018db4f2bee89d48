//go:build !wasip1

package site

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// planted are the mistakes that are compiled in on purpose, and what the judge says of each.
var planted = map[string]string{
	"record":  "asks",                    // a machine is made before its record says so
	"watch":   "left over|not tidied up", // what changes is not seen
	"stale":   "deletes a machine",       // a deletion is decided by what was read before
	"garbled": "cannot be read since",    // a record that cannot be read is taken for none
	"restore": "for its own",             // a machine of a launch that was undone is taken for that of another
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
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSite$", "-test.timeout", "20m", "-sim.count", "40")
			cmd.Env = append(os.Environ(), "POOLKEEPER_PLANTED="+bug, "GOGC=400")
			out, err := cmd.CombinedOutput()
			line := regexp.MustCompile("WRONG.*(" + wrong + ")").Find(out) // what led up to it may have the words, too
			if err == nil || line == nil {
				t.Fatalf("not found: %v, %s", err, out)
			}
			t.Logf("%s", line)
		})
	}
}
