package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreignWords are texts on docs/troubleshoot.md that come from other programs.
var foreignWords = []string{"connection refused", "console.log.kvm", "/dev/loop0"}

// shipped is all Go code that is in the program, with texts that are put together from
// constants made one.
func shipped(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, f := range tree(t, ".go", ".html") {
		if !strings.HasSuffix(f.path, "_test.go") && !strings.HasPrefix(f.path, "test/") && !strings.HasPrefix(f.path, "scripts/") {
			all.WriteString(f.text)
		}
	}
	joined := regexp.MustCompile(`" \+\s*"`).ReplaceAllString(all.String(), "")
	return strings.ToLower(strings.ReplaceAll(joined, `\"`, `"`))
}

// alarms are the messages that the program logs as warnings and errors, up to what happens
// next (behind a semicolon or colon), and where.
func alarms(t *testing.T) map[string]string {
	t.Helper()
	messages := map[string]string{}
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
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || isIdent(method.X, "http") || !slices.Contains([]string{"Warn", "Error", "Failed"}, method.Sel.Name) {
				return true
			}
			at := 0
			switch {
			case method.Sel.Name == "Failed":
				at = 2
			case len(call.Args) > 1 && isLogger(call.Args[0]):
				at = 1
			}
			if at < len(call.Args) {
				if text := constant(call.Args[at]); text != "" {
					text = regexp.MustCompile(`[;:].*`).ReplaceAllString(text, "")
					messages[text] = fset.Position(call.Pos()).String()
				}
			}
			return true
		})
	}
	if len(messages) < 50 {
		t.Fatalf("%d messages only: does the search still find them?", len(messages))
	}
	return messages
}

// constant is a text that is written down or put together of such, "" for any other.
func constant(e ast.Expr) string {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		return constant(sum.X) + constant(sum.Y)
	}
	text, _ := literal(e)
	return text
}

// A warning that an operator searches for and does not find on docs/troubleshoot.md fails
// here, when it is new and when it gets other words.
func TestAlarmsAreExplained(t *testing.T) {
	text := strings.ToLower(page(t, "docs/troubleshoot.md").text)
	for message, at := range alarms(t) {
		if !strings.Contains(text, `"`+strings.ToLower(message)) {
			t.Errorf("%s: docs/troubleshoot.md does not explain %q", at, message)
		}
	}
}

// A message that docs/troubleshoot.md names and that the program does not say any more
// fails here: who has that in the log would not find it, and who reads it would wait for it.
func TestMessagesThatAreNamed(t *testing.T) {
	code := shipped(t)
	f := page(t, "docs/troubleshoot.md")
	named := 0
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatchIndex(f.text, -1) {
		cell := f.text[row[2]:row[3]]
		for _, m := range regexp.MustCompile("\"([^\"]+)\"|`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			for _, part := range regexp.MustCompile(`…|\b[A-Z]+\b`).Split(m[1]+m[2], -1) {
				part = strings.Trim(part, " :()")
				if len(part) < 8 || slices.ContainsFunc(foreignWords, func(w string) bool { return strings.Contains(part, w) }) {
					continue
				}
				named++
				if !strings.Contains(code, strings.ToLower(part)) {
					t.Errorf("%s:%d: nothing says %q", f.path, f.lineOf(row[0]), part)
				}
			}
		}
	}
	if named < 60 {
		t.Errorf("%d messages are named only", named)
	}
}
