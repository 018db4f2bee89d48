package web

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
)

// oneHook takes what is signed with "secret".
type oneHook struct{ kept int }

func (*oneHook) Hook(name string) (hook.Settings, bool) {
	return hook.Settings{Name: "push", Secret: "secret"}, name == "push"
}

func (h *oneHook) Keep(context.Context, *hook.Delivery) (bool, error) { h.kept++; return true, nil }

func (*oneHook) Count(string, string) {}

// FuzzRequest: whatever a client sends, it gets an answer that is no failure of ours, with the headers
// that keep a browser from taking it for something else; what it sent is no markup of the page,
// and nothing is changed by it.
func FuzzRequest(f *testing.F) {
	for _, line := range []string{
		"GET / HTTP/1.1", "GET /?refresh=10 HTTP/1.1", "HEAD /node-list?fields=id,state HTTP/1.1", "GET /image-list.json?x=%ff HTTP/1.1", "POST /hooks/push HTTP/1.1\r\nX-Hub-Signature-256: sha256=00",
		"GET /build-log/image-0000000001?line=2&lines=5 HTTP/1.1", "GET /log/image-0000000001?follow=0&offset=-1 HTTP/1.1\r\nRange: bytes=-5,1-2", "GET /log/../../etc/passwd HTTP/1.1",
		"GET /search?q=<script>alert(1)</script> HTTP/1.1", "GET /images/a%2fb HTTP/1.1", "GET /nodes?state=ready&provider=%00 HTTP/1.1", "GET /node/000000001 HTTP/1.0", "GET /metrics HTTP/1.1\r\nAccept: a/b;q=2, */*;q=0.0.1",
		"OPTIONS * HTTP/1.1", "GET http://other/ready HTTP/1.1\r\nAccept: application/json", "GET /request-list HTTP/1.1\r\nAccept: text/plain;q=1e9\r\nAuthorization: Basic eDp5", "CONNECT a:1 HTTP/1.1", "GET /history?kind=node&since=-1h&limit=x HTTP/1.1",
	} {
		f.Add([]byte(line+"\r\nHost: h\r\n\r\n"), false)
		f.Add([]byte(line+"\r\nHost: h\r\nContent-Length: 4\r\n\r\n{\"a\""), true)
	}
	nodes := []*zkmodel.Node{zkmodel.DecodeNode("0000000001", []byte(`{"state":"ready","provider":"p","type":["<b>"]}`), recipe.Stat{})}
	door := &oneHook{}
	o := Options{Tree: still(nil, nodes, nil), Gatherer: prometheus.NewRegistry(), Now: clock(captured), Hooks: door, Access: Access{Token: "Tr0ub4dor"}}
	h := newHandler(o)
	h.patience = time.Second
	routes := h.routes()
	f.Fuzz(func(t *testing.T, text []byte, far bool) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return // the server of the standard library answers
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = r.WithContext(ctx)
		r.RemoteAddr = map[bool]string{false: "127.0.0.1:1", true: "192.0.2.1:1"}[far]
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		head, body := w.Header(), w.Body.String()
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%q: %d, %v\n%s", text, w.Code, head, body)
		}
		if strings.HasPrefix(head.Get("Content-Type"), "text/html") && strings.Count(strings.ToLower(body), "<script") > 1 {
			t.Errorf("%q: the page has two scripts:\n%s", text, body)
		}
		if strings.Contains(body, "Tr0ub4dor") && !bytes.Contains(text, []byte("Tr0ub4dor")) || door.kept > 0 {
			t.Errorf("%q: the token is shown, or an unsigned delivery was kept: %d", text, door.kept)
		}
	})
}

// FuzzAccept: a header that nobody can read asks for nothing; a weight is one between 0 and 1.
func FuzzAccept(f *testing.F) {
	for _, header := range []string{"", "*/*", "text/html;q=0.5,application/json", "a/b;q=2", ";;;,,,", "text/*;q=NaN", "application/json;q=-0", "text/plain; q = 1", "\xff/\x00"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for one := range strings.SplitSeq(header, ",") {
			if weight, ok := parseWeight(one); ok && !(weight >= 0 && weight <= 1) {
				t.Errorf("%q weighs %v", one, weight)
			}
		}
		ranges := parseAccept(header)
		if len(ranges) > len(header)+1 {
			t.Errorf("%d ranges of %q", len(ranges), header)
		}
	})
}
