package web

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/test/webtest"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// captured is when Nodepool's answers in testdata were captured.
var captured = time.Date(2026, 11, 20, 7, 26, 56, 0, time.UTC)

// clock is a daemon's clock that stands still.
func clock(at time.Time) func() time.Time { return func() time.Time { return at } }

// still is a tree that does not change.
func still(images []*zkmodel.Image, nodes []*zkmodel.Node, requests []*zkmodel.Request, components ...*zkmodel.Component) Tree {
	return Tree{
		Images:   func() []*zkmodel.Image { return images },
		Nodes:    func() []*zkmodel.Node { return nodes },
		Requests: func() []*zkmodel.Request { return requests },
		Components: func(kind string) []*zkmodel.Component {
			var list []*zkmodel.Component
			for _, c := range components {
				if c.Kind == kind {
					list = append(list, c)
				}
			}
			return list
		},
	}
}

// newLogs is a folder of logs with that of one build, image-0000000001.
func newLogs(t *testing.T, text string) *buildlog.Dir {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "image-0000000001"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return buildlog.NewDir(func(image, build string) string { return filepath.Join(dir, image+"-"+build) })
}

// answer is what came back.
type answer = webtest.Answer

// serve answers one request.
func serve(o Options, r *http.Request) answer { return webtest.Serve(newHandler(o).routes(), r) }

// get answers a GET; headers are pairs.
func get(t *testing.T, o Options, target string, headers ...string) answer {
	t.Helper()
	return webtest.Get(t, newHandler(o).routes(), target, headers...)
}

// shown is what a page shows: without links, and with one blank where there are several.
func shown(a answer) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`</?a\b[^>]*>`).ReplaceAllString(a.Body, "")), " ")
}
