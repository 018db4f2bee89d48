package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

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
type answer struct {
	status int
	header http.Header
	body   string
}

// serve answers one request.
func serve(o Options, r *http.Request) answer {
	w := httptest.NewRecorder()
	newHandler(o).routes().ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// get answers a GET; headers are pairs.
func get(t *testing.T, o Options, target string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.RemoteAddr = "127.0.0.1:40000"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return serve(o, r)
}

// expect checks an answer's status.
func (a answer) expect(t *testing.T, status int) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
}

// stream is an answer over the network, to be read as it comes.
type stream struct {
	answer
	io.ReadCloser
}

// fetch gets a page over the network; it is closed when the test ends.
func fetch(t *testing.T, url string) stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return stream{answer{status: response.StatusCode, header: response.Header}, response.Body}
}

// text reads a stream to its end.
func (s stream) text(t *testing.T) string {
	t.Helper()
	data, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// shown is what a page shows: without links, and with one blank where there are several.
func shown(a answer) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`</?a\b[^>]*>`).ReplaceAllString(a.body, "")), " ")
}
