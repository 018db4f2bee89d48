package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// nodesWithComment is a site's nodes, of which one has a comment of some size.
func nodesWithComment(n, size int) []*zkmodel.Node {
	nodes := manyNodes(n)
	nodes[n/2] = zkmodel.DecodeNode("0000009999", fmt.Appendf(nil, `{"state": "hold", "comment": %q, "type": [%q]}`,
		strings.Repeat("x", size), strings.Repeat("y", size)), recipe.Stat{})
	return nodes
}

// One record makes no listing of everybody's memory. Catches: rows that are
// padded to the widest cell, whatever that is.
func TestOneLargeRecordMakesNoLargeListing(t *testing.T) {
	const nodes, comment = 300, 300_000
	o := Options{Tree: still(nil, nodesWithComment(nodes, comment), nil), Now: clock(captured)}
	for path, most := range map[string]int{
		"/node-list":                    nodes * 25 * 300,
		"/node-list?fields=id,comment":  nodes * 2 * 300,
		"/":                             nodes * 2000,
		"/nodes":                        nodes * 2000,
		"/nodes/0000009999":             nodes * 200,
		"/node-list?node_id=0000009999": 2 * 25 * 300,
	} {
		response := get(t, o, path)
		response.Expect(t, http.StatusOK)
		if got := len(response.Body); got > most {
			t.Errorf("%s: %d bytes for %d nodes, want at most %d", path, got, nodes, most)
		}
		if !strings.Contains(response.Body, "xxx…") && strings.Contains(path, "node-list") {
			t.Errorf("%s does not say that a cell was cut off", path)
		}
	}
	json := get(t, o, "/node-list", "Accept", "application/json").Body
	if !strings.Contains(json, strings.Repeat("x", comment)) {
		t.Error("JSON lacks the comment")
	}
}

// What is too large to be kept is written twice, and is the same both times.
func TestLargeListingsAreStreamed(t *testing.T) {
	const nodes = 8000
	h := newHandler(Options{Tree: still(nil, manyNodes(nodes), nil), Now: clock(captured)})
	server := httptest.NewServer(h.routes())
	t.Cleanup(server.Close)
	type answered struct {
		status int
		header http.Header
		length int64
	}
	ask := func(method, tag string) (answered, []byte) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/node-list", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tag != "" {
			request.Header.Set("If-None-Match", tag)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answered{response.StatusCode, response.Header, response.ContentLength}, body
	}
	response, body := ask(http.MethodGet, "")
	if rows := bytes.Count(body, []byte("\n")) - 4; response.status != http.StatusOK || rows != nodes || len(body) <= maxBuffered {
		t.Fatalf("status %d, %d rows, %d bytes", response.status, rows, len(body))
	}
	if response.length != int64(len(body)) {
		t.Errorf("Content-Length %d of %d bytes", response.length, len(body))
	}
	if head, _ := ask(http.MethodHead, ""); head.length != int64(len(body)) {
		t.Errorf("HEAD: Content-Length %d, want %d", head.length, len(body))
	}
	if same, _ := ask(http.MethodGet, response.header.Get("ETag")); same.status != http.StatusNotModified {
		t.Errorf("the same again: status %d, want 304", same.status)
	}
	for range maxStreams { // clients that take their time
		h.streams <- struct{}{}
	}
	if busy, _ := ask(http.MethodGet, ""); busy.status != http.StatusServiceUnavailable || busy.header.Get("Retry-After") == "" {
		t.Errorf("one too many: status %d, want 503 and when to come again", busy.status)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	m := newMeasure()
	m.limit = 3 << 20
	chunk := make([]byte, 1<<20)
	for n := range 5 {
		_, err := m.Write(chunk)
		if over := n >= 3; (err != nil) != over {
			t.Errorf("after %d MiB: %v", n+1, err)
		}
	}
	if kept := m.small.Cap(); kept > 0 {
		t.Errorf("%d bytes are kept of an answer that is not", kept)
	}
}

// Foreign text can neither move the cursor nor turn the direction of writing.
func TestPageShowsOnlyVisibleText(t *testing.T) {
	node := zkmodel.DecodeNode("0000000001", []byte(`{"state": "hold", "hostname": "a\u202egnp.exe", "provider": "p\u001b[2J",
		"comment": "\u2066hidden\u2069\u0007", "type": ["l\u200f"]}`), recipe.Stat{})
	page := get(t, Options{Tree: still(nil, []*zkmodel.Node{node}, nil)}, "/nodes").Body
	if at := strings.IndexAny(page, "\u202e\u2066\u2069\u200f\a\x1b"); at >= 0 {
		t.Errorf("the page has %q", page[max(0, at-20):at+20])
	}
	if !strings.Contains(page, "gnp.exe") || !strings.Contains(page, "hidden") {
		t.Error("the page lacks the text itself")
	}
}

// Supervisors get the shape that they ask for, and never an error for asking. What others than
// the readers of the page get is as it was.
func TestReadyHeedsAccept(t *testing.T) {
	fault := error(nil)
	o := Options{Ready: func() error { return fault }}
	for accept, want := range map[string]string{
		"": "OK", "text/plain": "OK", "image/png": "OK", "application/json": `{"ready":true}` + "\n",
	} {
		if got := get(t, o, "/ready", "Accept", accept, "Origin", "https://else.where"); got.Body != want || got.Status != http.StatusOK {
			t.Errorf("Accept %q: %d %q, want %q", accept, got.Status, got.Body, want)
		}
	}
	fault = io.ErrUnexpectedEOF
	got := get(t, o, "/ready", "Accept", "application/json", "Origin", "https://else.where")
	if want := `{"ready":false,"reason":"unexpected EOF"}` + "\n"; got.Body != want || got.Status != http.StatusServiceUnavailable ||
		got.Header.Get("Content-Type") != typeJSON {
		t.Errorf("not ready: %d %q %s", got.Status, got.Body, got.Header.Get("Content-Type"))
	}
}

// Who may read the page learns what the daemon lacks for all of its work, and who it is; others
// only whether it works. Mistakes: a cloud's words for everybody; troubles of another host's
// daemon; not ready for a trouble with which it goes on.
func TestReadyHasDetail(t *testing.T) {
	no := func(s string) error { return errors.New(s) }
	o := Options{
		Daemon: "launcher", Host: "nl01.example.org", Version: "1.2.3", Access: Access{Token: "token-of-the-test"}, Now: func() time.Time { return time.Unix(1795161300, 5) },
		Guarded: func() []string { return []string{"provider north is kept", "image debian is kept"} },
		Tree: Tree{
			WaitSynced: func(context.Context) error { return no("outage") },
			Components: func(kind string) []*zkmodel.Component {
				if kind != zkmodel.KindPool {
					return nil
				}
				one := func(host, provider, why string) *zkmodel.Component {
					return &zkmodel.Component{Kind: kind, Hostname: host, ProviderName: provider, Trouble: why}
				}
				return []*zkmodel.Component{one("nl01", "north", "503"), one("nl01", "north", "503"), one("nl02", "south", "504"), one("nl01", "east", "")}
			},
		},
	}
	const want = `{"ready":true,"version":"v1","daemon":"launcher","host":"nl01.example.org","program":"1.2.3","since":"2026-11-20T07:55:00Z","checks":[` +
		`{"name":"work","ok":true},{"name":"tree","ok":false,"detail":"not in step with ZooKeeper: outage"},` +
		`{"name":"configuration","ok":false,"detail":"provider north is kept; image debian is kept"},{"name":"providers","ok":false,"detail":"north: 503"}]}` + "\n"
	if got := get(t, o, "/ready", "Accept", "application/json", "Authorization", "Bearer token-of-the-test"); got.Body != want || got.Status != http.StatusOK {
		t.Errorf("%d\n%s\n%s", got.Status, got.Body, want)
	}
	if got := get(t, o, "/ready", "Accept", "application/json", "Authorization", "Bearer token-of-the-test", "Origin", "https://else.where"); got.Body != `{"ready":true}`+"\n" {
		t.Errorf("for another site's page: %s", got.Body)
	}
}
