package openstack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"
)

// proxy stands between a provider and the real services, one listener for each
// of them. It records every call, and makes some of them go wrong.
type proxy struct {
	cloud   string            // its name in clouds.yaml
	targets map[string]string // the real services
	urls    map[string]string // of the listeners

	mu      sync.Mutex
	calls   []call
	fault   func(call) mishap
	tokens  map[string]bool // all that were seen
	revoked map[string]bool
}

// call is one request that came by.
type call struct {
	N       int // of all calls, from 1
	Service string
	Method  string
	Path    string
	Try     int // of this method and path, from 1
	Status  int // what the client was told; 0 when the connection was cut
}

// services are where the stack listens, by the names of their overrides in
// clouds.yaml.
func services(tb testing.TB) map[string]string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv(stackVariable), "services"))
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = address
	}
	return found
}

// interpose starts a proxy in front of a cloud, and writes a clouds.yaml that
// leads to it.
func interpose(tb testing.TB, cloud string) (*proxy, string) {
	tb.Helper()
	p := &proxy{cloud: cloud, urls: map[string]string{}, tokens: map[string]bool{}, revoked: map[string]bool{}}
	p.targets = services(tb)
	for service, target := range p.targets {
		u, err := url.Parse(target)
		if err != nil {
			tb.Fatal(err)
		}
		through := &httputil.ReverseProxy{
			// Links in answers must lead back to us: the Host stays.
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = u.Scheme, u.Host, r.In.Host
			},
			FlushInterval: -1,
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		}
		server := httptest.NewServer(p.handle(service, through))
		tb.Cleanup(server.Close)
		p.urls[service] = server.URL
	}
	path := filepath.Join(tb.TempDir(), "clouds.yaml")
	p.writeClouds(tb, path, cloud, false)
	return p, path
}

// writeClouds writes the cloud's entry, with the credentials of source and the
// proxy's addresses, and one with a wrong password. With spoilt, the right one
// has it, too.
func (p *proxy) writeClouds(tb testing.TB, path, source string, spoilt bool) {
	tb.Helper()
	clouds := map[string]any{p.cloud: p.entry(tb, source, spoilt), "spoilt": p.entry(tb, p.cloud, true)}
	text, err := yaml.Marshal(map[string]any{"clouds": clouds})
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// entry is one of the stack's clouds, reached through the proxy.
func (p *proxy) entry(tb testing.TB, source string, spoilt bool) map[string]any {
	tb.Helper()
	content, err := os.ReadFile(cloudsFile())
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Clouds map[string]map[string]any }
	if err := yaml.Unmarshal(content, &file); err != nil {
		tb.Fatal(err)
	}
	entry := file.Clouds[source]
	auth := entry["auth"].(map[string]any)
	auth["auth_url"] = p.urls["identity"] + "/v3"
	if spoilt {
		auth["password"] = "wrong"
	}
	entry["image_endpoint_override"] = p.urls["image"]
	entry["compute_endpoint_override"] = p.urls["compute"] + "/v2.1"
	entry["network_endpoint_override"] = p.urls["network"]
	return entry
}

// handle records a call, and passes it on unless it shall go wrong.
func (p *proxy) handle(service string, through http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, bad := p.note(service, r)
		told := &listener{ResponseWriter: w}
		defer func() { p.told(c, told.status) }()
		if bad != nil && bad(told, r) {
			return
		}
		through.ServeHTTP(told, r)
	})
}

func (p *proxy) note(service string, r *http.Request) (int, mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := call{N: len(p.calls) + 1, Service: service, Method: r.Method, Path: r.URL.Path, Try: 1}
	for _, before := range p.calls {
		if before.Method == c.Method && before.Path == c.Path {
			c.Try++
		}
	}
	p.calls = append(p.calls, c)
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		p.tokens[token] = true
		if p.revoked[token] {
			return c.N, answer(http.StatusUnauthorized)
		}
	}
	if p.fault == nil {
		return c.N, nil
	}
	return c.N, p.fault(c)
}

func (p *proxy) told(n, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[n-1].Status = status
}

// inject decides from now on which calls go wrong; nil ends that.
func (p *proxy) inject(fault func(call) mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// log is all that came by.
func (p *proxy) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	for _, c := range p.calls {
		fmt.Fprintf(&text, "%4d %-8s %-6s %s: %d\n", c.N, c.Service, c.Method, c.Path, c.Status)
	}
	return text.String()
}

// listener notes the status that a client is told.
type listener struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (l *listener) WriteHeader(status int) {
	if status >= http.StatusOK {
		l.status = status
	}
	l.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the proxy flush.
func (l *listener) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// count is how many calls of a method came by whose path contains part.
func (p *proxy) count(method, part string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.Method == method && strings.Contains(c.Path, part) {
			n++
		}
	}
	return n
}
