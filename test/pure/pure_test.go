package pure

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// The check itself finds what it looks for: one that finds nothing would pass always.
func TestImpuritiesAreFound(t *testing.T) {
	for source, want := range map[string]string{
		`import "os"`:                                     "imports os",
		`import "net/http"`:                               "imports net/http",
		`import "context"`:                                "imports context",
		`import "github.com/hashicorp/go-hclog"`:          "imports github.com/hashicorp/go-hclog",
		`import "poolkeeper/zkmodel/recipe"`:              "imports poolkeeper/zkmodel/recipe",
		`import "time"; var now = time.Now()`:             "calls time.Now",
		`import clock "time"; var f = clock.Since`:        "calls time.Since",
		`import . "time"; var d = Until(Time{})`:          "imports time into its own names",
		`import "time"; var t = time.NewTimer(0)`:         "calls time.NewTimer",
		`import "time"; var d = time.Time{}.Add(1)`:       "",
		`import "poolkeeper/zkmodel"; var n zkmodel.Node`: "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(impurities(file), "; "); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
