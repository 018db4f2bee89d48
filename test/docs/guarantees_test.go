package docs

import (
	"cmp"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const guarantees = "docs/guarantees.md"

// A promise that no test would notice, or that has no mechanism, and a number that is missing or there
// twice fail here. That the tests exist is for TestTestsThatAreCited to see.
func TestPromisesHaveTests(t *testing.T) {
	last := map[string]int{}
	named := regexp.MustCompile("`(?:Test|Fuzz)[A-Z]\\w*`")
	for _, m := range regexp.MustCompile(`(?m)^\| ([SLDXM])(\d+) \|(.*)\|$`).FindAllStringSubmatch(page(t, guarantees).text, -1) {
		cells := strings.Split(m[3], " | ")
		if len(cells) != 4 {
			t.Errorf("%s%s has %d cells, want promise, mechanism, tests, simulation", m[1], m[2], len(cells))
			continue
		}
		if !named.MatchString(cells[2]) || len(strings.TrimSpace(cells[1])) < 10 {
			t.Errorf("%s%s has no test, or no mechanism: %s", m[1], m[2], m[3])
		}
		last[m[1]]++
		if m[2] != strconv.Itoa(last[m[1]]) {
			t.Errorf("%s%s comes where %s%d should", m[1], m[2], m[1], last[m[1]])
		}
	}
	for _, kind := range []string{"S", "L", "D", "X", "M"} {
		if last[kind] < 5 {
			t.Errorf("%d promises of kind %s", last[kind], kind)
		}
	}
}

// A defect whose command cannot be right, or that was tried on no day, or whose commit is not in the
// history, fails here. Whether the command still shows it is seen by running it.
func TestTrackRecord(t *testing.T) {
	_, text, _ := strings.Cut(page(t, guarantees).text, "## Track record")
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| [^|]{20,} \\| (?:test|user|model|fuzzing|reading|simulation|chaos|mutants|not recorded) \\| `scripts/reproduce ([0-9a-f]{7,}) \\./([\\w/]+) ((?:Test|Fuzz)\\w+)(?: ([0-9a-f]{7,}))?` \\| (\\d{4}-\\d\\d-\\d\\d) \\|$")
	rows := row.FindAllStringSubmatch(text, -1)
	if all := strings.Count(text, "`scripts/reproduce "); all != len(rows) || all < 5 {
		t.Errorf("%d commands, %d rows that are whole", all, len(rows))
	}
	deep := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", "2c7c7a6^{commit}").Run() == nil // no archive, and no shallow clone
	for i, m := range rows {
		if m[1] != strconv.Itoa(i+1) {
			t.Errorf("row %s comes as number %d", m[1], i+1)
		}
		if _, err := time.Parse(time.DateOnly, m[6]); err != nil {
			t.Error(err)
		}
		if !there(m[3]) {
			t.Errorf("row %s: there is no ./%s", m[1], m[3])
		}
		if deep && exec.CommandContext(t.Context(), "git", "-C", root, "grep", "-q", "^func "+m[4]+"(", cmp.Or(m[5], m[2]), "--", m[3]).Run() != nil {
			t.Errorf("row %s: commit %s has no %s in ./%s", m[1], cmp.Or(m[5], m[2]), m[4], m[3])
		}
	}
}
