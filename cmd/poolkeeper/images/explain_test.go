package images

import (
	"bytes"
	"strings"
	"testing"

	"poolkeeper/builder"
	"poolkeeper/builder/plan"
)

// Mistakes: a line that wraps on a terminal of 80 columns; words that are lost where lines are
// folded; a pipe that gets other lines than before.
func TestExplanationFits(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("the newest build is young enough and nobody asks ", 4))
	e := builder.Explanation{
		Image: "debian-12",
		Verdicts: []plan.Verdict{
			{Subject: "build", Rule: "rebuild-age", Speaks: "no", Detail: long},
			{Subject: "upload debian-12-0000000007 to north", Rule: "provider-has-newest", Speaks: "passes", Detail: "short"},
		},
		Plan: plan.Plan{Actions: []plan.Action{{Kind: plan.Build, Image: "debian-12", Why: long}}},
	}
	for _, width := range []int{0, 80, 120} {
		var out bytes.Buffer
		if err := printExplanation(&out, e, width, true); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(out.String()) {
			widest = max(widest, len(strings.TrimRight(line, "\n")))
		}
		words := strings.Join(strings.Fields(out.String()), " ")
		switch {
		case width > 0 && widest > width, width == 0 && !strings.Contains(out.String(), long+")\n"):
			t.Errorf("for %d: %d wide:\n%s", width, widest, &out)
		case !strings.Contains(words, "to do: build debian-12 ("+long+")"):
			t.Errorf("for %d: words are lost:\n%s", width, &out)
		}
	}
}
