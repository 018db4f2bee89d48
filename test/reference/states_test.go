package reference

import (
	"fmt"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// The states and their transitions are those of the tables that daemons move records by.
func TestStates(t *testing.T) {
	var text strings.Builder
	text.WriteString("# States\n\nMade from the tables by which daemons change states; a test holds it to them. Every other change is refused.\n" +
		"What the states mean to Nodepool and Zuul: docs/wire.md. \"other daemons\" are Nodepool's.\n")
	chapter(&text, "Builds", zkmodel.BuildTransitions())
	chapter(&text, "Uploads", zkmodel.UploadTransitions())
	chapter(&text, "Nodes", zkmodel.NodeTransitions())
	chapter(&text, "Requests", zkmodel.RequestTransitions())
	text.WriteString("\nA requestor deletes its request in any state.\n")
	waves(&text, "Waves", wave.Transitions())
	waves(&text, "Jobs of a wave", wave.JobTransitions())
	same(t, "docs/reference/states.md", linked(text.String()))
}

func chapter[S ~string](text *strings.Builder, title string, rows []zkmodel.Transition[S]) {
	fmt.Fprintf(text, "\n## %s\n\n| from | to | by |\n|---|---|---|\n", title)
	for _, row := range rows {
		from := "any"
		if row.From != "" {
			from = "`" + string(row.From) + "`"
		}
		fmt.Fprintf(text, "| %s | `%s` | %s |\n", from, row.To, row.By)
	}
}

func waves(text *strings.Builder, title string, rows []wave.Transition) {
	fmt.Fprintf(text, "\n## %s\n\n| from | to |\n|---|---|\n", title)
	for _, row := range rows {
		fmt.Fprintf(text, "| `%s` | `%s` |\n", row.From, row.To)
	}
}
