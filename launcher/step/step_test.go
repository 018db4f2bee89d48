package step_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"poolkeeper/launcher/step"
)

// Every step that is declared is in the list that tests go through: one that is
// missing there would never be crashed at.
func TestStepsAreAllListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "step.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Step" {
				declared += len(spec.Names)
			}
		}
		return true
	})
	listed := map[step.Step]bool{}
	for _, s := range step.All() {
		listed[s] = true
	}
	if declared != len(listed) || declared == 0 {
		t.Errorf("%d steps are declared, %d listed", declared, len(listed))
	}
}
