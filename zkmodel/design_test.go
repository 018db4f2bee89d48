package zkmodel_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// Mistake: a transition that is added, changed or taken away in the code alone.
func TestDesignShowsTheTransitions(t *testing.T) {
	data, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	shows(t, text, "Nodes", zkmodel.NodeTransitions())
	shows(t, text, "Requests", zkmodel.RequestTransitions())
	shows(t, text, "Builds", zkmodel.BuildTransitions())
	shows(t, text, "Uploads", zkmodel.UploadTransitions())
}

func shows[S ~string](t *testing.T, text, heading string, rows []zkmodel.Transition[S]) {
	t.Helper()
	want := "| from | to | by |\n|---|---|---|\n"
	for _, row := range rows {
		want += fmt.Sprintf("| %s | %s | %s |\n", cmp.Or(string(row.From), "*any*"), row.To, row.By)
	}
	_, section, _ := strings.Cut(text, "\n### "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n### ")
	if !strings.Contains(section+"\n", want+"\n") {
		t.Errorf("DESIGN.md has not this table of %s:\n%s", heading, want)
	}
}
