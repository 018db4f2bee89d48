package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// messageAt is the place of the message among the arguments of a logging method; what
// follows it are keys and values.
var messageAt = map[string]int{
	"Trace": 0, "Debug": 0, "Info": 0, "Warn": 0, "Error": 0, // hclog.Logger
	"With": -1, "Log": 1, // hclog.Logger
	"Failed": 2, // recipe.Throttle
}

// keysOf calls found for each key that a call logs under. Arguments that are put
// together elsewhere are found there, as literals of []any and as what is appended.
func keysOf(node ast.Node, found func(key string, at token.Pos)) {
	each := func(args []ast.Expr, from int) {
		for i := from; i < len(args); i += 2 {
			if text, ok := literal(args[i]); ok && !strings.HasPrefix(text, "-") { // an option of a program
				found(text, args[i].Pos())
			}
		}
	}
	switch n := node.(type) {
	case *ast.CompositeLit:
		if list, ok := n.Type.(*ast.ArrayType); ok && isIdent(list.Elt, "any") && len(n.Elts)%2 == 0 {
			each(n.Elts, 0)
		}
	case *ast.CallExpr:
		if isIdent(n.Fun, "append") && len(n.Args) > 2 && isArguments(n.Args[0]) {
			each(n.Args, 1)
		}
		method, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || isIdent(method.X, "http") {
			return
		}
		at, ok := messageAt[method.Sel.Name]
		if ok && at == 0 && len(n.Args) > 1 && isLogger(n.Args[0]) {
			at = 1 // recipe.Throttle
		}
		if ok {
			each(n.Args, at+1)
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// isArguments reports whether an expression is called like the arguments of a log.
func isArguments(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 { // slices.Clip(args)
		e = call.Args[0]
	}
	return isIdent(e, "args") || isIdent(e, "fields") || isIdent(e, "about")
}

func isLogger(e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		e = sel.Sel
	}
	id, ok := e.(*ast.Ident)
	return ok && strings.HasSuffix(strings.ToLower(id.Name), "log")
}

// A key with a blank, a second spelling of one that there is, a new key that the list does
// not have, and a key in the list that nothing logs any more fail here.
func TestLogKeys(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(page(t, "docs/log-keys.md").text, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if listed[m[1]] {
				t.Errorf("docs/log-keys.md lists %s twice", m[1])
			}
			listed[m[1]] = true
		}
	}
	used := map[string]bool{}
	fset := token.NewFileSet()
	for _, f := range tree(t, ".go") {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "test/") || strings.HasPrefix(f.path, "scripts/") {
			continue
		}
		parsed, err := parser.ParseFile(fset, f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			keysOf(n, func(key string, at token.Pos) {
				used[key] = true
				switch {
				case listed[key]:
				case !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(key):
					t.Errorf("%s: the log key %q is not snake_case", fset.Position(at), key)
				default:
					t.Errorf("%s: docs/log-keys.md does not list the log key %s", fset.Position(at), key)
				}
			})
			return true
		})
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		if !used[key] {
			t.Errorf("docs/log-keys.md lists %s, under which nothing is logged", key)
		}
	}
}

// The check of log keys finds keys wherever a log is written, and nothing else: were a way
// forgotten, keys written that way would be checked by nobody.
func TestKeysOf(t *testing.T) {
	const text = `package p
func f() {
	log.Info("message", "one", 1, "two", 2)
	l.deps.Log.With("three", 3).Warn("message")
	t.tell.Warn(t.log, "message", "four", 4)
	t.tell.Failed(log, err, "message", "five", 5)
	log.Log(level, "message", "six", 6)
	args = append(slices.Clip(args), "seven", 7)
	fields := []any{"eight", 8}
	http.Error(w, "message", 500)
	names = append(names, "a", "b")
}`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		keysOf(n, func(key string, _ token.Pos) { keys = append(keys, key) })
		return true
	})
	slices.Sort(keys)
	if got, want := strings.Join(keys, " "), "eight five four one seven six three two"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
