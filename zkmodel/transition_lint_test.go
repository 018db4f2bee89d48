package zkmodel_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maySet are the files that set a field named State without Move, and why.
var maySet = map[string]string{
	"zkmodel/transition.go":            "Move itself",
	"zkmodel/wave/state.go":            "the Move of waves and their jobs, which have tables of their own",
	"zkmodel/build.go":                 "reads what operators write by hand",
	"zkmodel/upload.go":                "reads what operators write by hand",
	"zkmodel/process.go":               "a component's state, which has no table",
	"builder/presence/self.go":         "a component's state, which has no table",
	"launcher/validate/outcome.go":     "how far a trial has come, which is a function of its node and of what it was before",
	"zkmodel/listing/trials.go":        "how far a trial has come, as a listing shows it",
	"zkmodel/overview/explain_node.go": "of an upload, as it is told of a node",
	"zkmodel/overview/images.go":       "whether an image is fresh, as status shows it",
	"zkmodel/overview/report.go":       "what a site comes to, as status shows it",
	"web/site/waves.go":                "the word of a step into service on the page",
	"web/site/grid.go":                 "a cell on the page",
	"web/site/images_view.go":          "a badge on the page",
	"web/site/overview.go":             "a badge on the page",
}

// Mistake: a command or a daemon that sets a state past the tables, which may then make
// a hold of a node that is being deleted.
func TestStatesAreSetByMoveAlone(t *testing.T) {
	root := ".."
	found := map[string]bool{}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || path == filepath.Join(root, "test")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		for _, finding := range statesSet(set, file) {
			found[name] = true
			if maySet[name] == "" {
				t.Errorf("%s: sets a state; zkmodel.Move does that, by the tables", finding)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files read: %v", files, err)
	}
	for name := range maySet {
		if !found[name] {
			t.Errorf("%s sets no state any more: take it from the list", name)
		}
	}
}

// statesSet finds where a file sets a field named State: by assignment, by a pointer to
// it, or in a literal of a record.
func statesSet(set *token.FileSet, file *ast.File) []string {
	var list []string
	say := func(n ast.Node) { list = append(list, fmt.Sprint(set.Position(n.Pos()))) }
	isState := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "State"
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, isState) {
				say(n)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && isState(n.X) {
				say(n)
			}
		case *ast.CompositeLit:
			if isRecord(n.Type) && slices.ContainsFunc(n.Elts, setsState) {
				say(n)
			}
		}
		return true
	})
	return list
}

// isRecord reports whether a literal's type is that of a record with a table.
func isRecord(e ast.Expr) bool {
	records := []string{"Build", "Upload", "Node", "Request"}
	switch e := e.(type) {
	case *ast.SelectorExpr:
		pkg, ok := e.X.(*ast.Ident)
		return ok && pkg.Name == "zkmodel" && slices.Contains(records, e.Sel.Name)
	case *ast.Ident:
		return slices.Contains(records, e.Name)
	}
	return false
}

func setsState(e ast.Expr) bool {
	pair, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	key, ok := pair.Key.(*ast.Ident)
	return ok && key.Name == "State"
}

// Mistake: the check above that finds nothing, whatever is written.
func TestStatesSetFindsEveryWay(t *testing.T) {
	const code = `package p
func f(n *zkmodel.Node) {
	n.State = zkmodel.NodeHold
	n.State, n.StateTime = zkmodel.NodeHold, 1
	p := &n.State
	m := &zkmodel.Node{ID: "1", State: zkmodel.NodeHold}
	ok := n.State == zkmodel.NodeHold
	c := badge{State: "fine"}
}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"p.go:3:2", "p.go:4:2", "p.go:5:7", "p.go:6:8"}
	if got := statesSet(set, file); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
