package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/test/webtest"
	"poolkeeper/web/buildlog"
)

func TestReady(t *testing.T) {
	var why error
	o := Options{Ready: func() error { return why }}
	for _, accept := range []string{"", "text/plain", "image/png"} { // TestReadyHeedsAccept has JSON
		response := get(t, o, "/ready", "Accept", accept)
		response.Expect(t, http.StatusOK)
		if got := response.Body; got != "OK" {
			t.Errorf("Accept %q: %q, want OK", accept, got)
		}
	}
	why = errors.New("provider cloud-a is not started")
	response := get(t, o, "/ready")
	response.Expect(t, http.StatusServiceUnavailable)
	if got, want := response.Body, "not ready: provider cloud-a is not started\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := response.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: %q, want no-store", got)
	}
	get(t, Options{}, "/ready").Expect(t, http.StatusOK)
}

// Once the daemon has been ready, /ready stays 200, because operators use Nodepool's as a liveness probe; strict=1 has the
// present state. /healthz depends on the main loop alone.
func TestReadyStaysReady(t *testing.T) {
	outage := errors.New("launcher waits for ZooKeeper")
	ready, alive := outage, error(nil)
	h := newHandler(Options{Ready: func() error { return ready }, Alive: func(context.Context) error { return alive }}).routes()
	expect := func(path string, status int, body string) {
		t.Helper()
		if got := webtest.Get(t, h, path, "Accept", "application/json", "Origin", "https://else.where"); got.Status != status || strings.TrimSpace(got.Body) != body {
			t.Errorf("%s: %d %s, want %d %s", path, got.Status, got.Body, status, body)
		}
	}
	const not = `{"ready":false,"reason":"launcher waits for ZooKeeper"}`
	expect("/ready", http.StatusServiceUnavailable, not)
	expect("/ready?strict=1", http.StatusServiceUnavailable, not)
	ready = nil
	expect("/ready", http.StatusOK, `{"ready":true}`)
	expect("/ready?strict=1", http.StatusOK, `{"ready":true}`)
	ready = outage
	expect("/ready", http.StatusOK, `{"ready":true}`)
	expect("/ready?strict=0", http.StatusOK, `{"ready":true}`)
	expect("/ready?strict=1", http.StatusServiceUnavailable, not)
	expect("/healthz", http.StatusOK, "OK")
	alive = errors.New("the loop is stuck")
	expect("/healthz", http.StatusServiceUnavailable, "not healthy: the loop is stuck")
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	builds := prometheus.NewCounter(prometheus.CounterOpts{Name: "poolkeeper_builds_total", Help: "Builds."})
	registry.MustRegister(builds)
	builds.Inc()
	response := get(t, Options{Gatherer: registry}, "/metrics")
	response.Expect(t, http.StatusOK)
	if got := response.Body; !strings.Contains(got, "\npoolkeeper_builds_total 1\n") || strings.Contains(got, "go_") {
		t.Errorf("got %s, want what is in the registry, and nothing else", got)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	o := Options{Tree: still(nil, nil, nil), Logs: buildlog.NewDir(nil), Gatherer: prometheus.NewRegistry()}
	for _, path := range []string{"/", "/ready", "/metrics", "/node-list", "/log/image-0000000001", "/nope"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "BREW"} {
			response := serve(o, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("x")))
			response.Expect(t, http.StatusMethodNotAllowed)
			if got := response.Header.Get("Allow"); got != "GET, HEAD" {
				t.Errorf("%s %s: Allow %q, want GET, HEAD", method, path, got)
			}
		}
	}
	response := serve(o, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/node-list", nil))
	response.Expect(t, http.StatusOK)
	if got := response.Body; got != "" || len(response.Header.Get("Content-Length")) < 3 {
		t.Errorf("HEAD: %s bytes announced, body %q; want the length alone", response.Header.Get("Content-Length"), got)
	}
}

func TestSecurityHeaders(t *testing.T) {
	o := Options{Tree: still(nil, nil, nil)}
	for _, path := range []string{"/", "/ready", "/node-list", "/nope"} {
		h := get(t, o, path).Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("Referrer-Policy") != "no-referrer" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none';") {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

// The policy allows the page's own style sheet and script, as they are sent, and no other;
// the page loads nothing.
func TestPageIsWhatThePolicyAllows(t *testing.T) {
	response := get(t, Options{Tree: still(nil, nil, nil)}, "/?refresh=10")
	rest := response.Body
	for element, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		before, from, _ := strings.Cut(rest, "<"+element+">")
		text, after, found := strings.Cut(from, "</"+element+">")
		if rest = before + after; !found || strings.Contains(rest, "<"+element) {
			t.Fatalf("the page has not one %s", element)
		}
		sum := sha256.Sum256([]byte(text))
		want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if got := response.Header.Get("Content-Security-Policy"); !strings.Contains(got, want) {
			t.Errorf("policy %q lacks %s", got, want)
		}
	}
	for _, what := range []string{"style=", "src=", "<link", "@import", "url("} {
		if strings.Contains(rest, what) {
			t.Errorf("the page has %s, which the policy forbids", what)
		}
	}
	if !strings.Contains(rest, `<meta http-equiv="refresh" content="10">`) {
		t.Error("the page is not loaded again")
	}
}

func TestRefresh(t *testing.T) {
	for query, want := range map[string]int{"": 0, "refresh=10": 10, "refresh=0": 0, "refresh=-1": 0, "refresh=1e9": 0, "refresh=99999": 0, "refresh=5;url=x": 0} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL.RawQuery = query
		if got := refresh(r); got != want {
			t.Errorf("refresh(%q) = %d, want %d", query, got, want)
		}
	}
}
