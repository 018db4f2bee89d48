// Package pure checks that a package only computes: it reads no clock, no file, no tree.
package pure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Check fails a test for each file of the package that it runs in, tests aside, that does
// more than compute.
func Check(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, found := range impurities(file) {
			t.Errorf("%s %s", name, found)
		}
	}
	if checked == 0 {
		t.Error("no file was checked")
	}
}

// impurities lists what a file of decisions may not have.
func impurities(file *ast.File) (list []string) {
	clock := ""
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		first, _, _ := strings.Cut(path, "/")
		if slices.Contains([]string{"os", "net", "context", "syscall"}, first) ||
			slices.Contains([]string{"github.com/hashicorp/go-hclog", "poolkeeper/zkmodel/recipe", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand"}, path) {
			list = append(list, "imports "+path)
		}
		if path != "time" {
			continue
		}
		switch clock = "time"; {
		case i.Name == nil:
		case i.Name.Name == ".":
			list = append(list, "imports time into its own names")
		default:
			clock = i.Name.Name
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && clock != "" && x.Name == clock &&
			slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}, selector.Sel.Name) {
			list = append(list, "calls time."+selector.Sel.Name)
		}
		return true
	})
	return list
}
