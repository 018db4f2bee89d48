package openstack

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs"
)

// stub is an OpenStack of one project in memory: as much of Keystone, Glance,
// Nova, Neutron and Cinder as the provider uses, with faults on demand. The
// real services are in test/openstack; here are their failures, and those that
// are not there.
type stub struct {
	*httptest.Server
	mux   *http.ServeMux
	ended chan struct{} // closed when the test is over

	mu       sync.Mutex
	password string
	tokens   map[string]bool
	logins   int
	refusals int      // of log-ins
	calls    []string // "METHOD /path" of each request that got past the faults
	faults   []*mishap
	images   map[string]*stubImage
	servers  map[string]*stubServer
	ips      map[string]*stubIP
	ports    map[string]map[string]any
	networks []map[string]any
	subnets  []map[string]any
	routers  []map[string]any // their interfaces are ports
	volumes  map[string]int   // Cinder's limits; nil when there is no Cinder
	disks    map[string]int   // volumes that servers boot from, in GB, by server
	unrouted bool             // no router leads from the networks of servers to the outside
	quota    int              // servers
	free     int              // floating IPs that Neutron can give
	deferred bool             // ports get an address only with a server
	boot     time.Duration
	page     int // entries of a page
	noImport bool
	// passwordEnds is what Keystone tells of our user's password; nil is never.
	passwordEnds any
}

// mishap is something that goes wrong with the next calls that match.
type mishap struct {
	match string // part of "METHOD /path"
	times int
	do    func(w http.ResponseWriter, r *http.Request) (handled bool)
}

func newStub(tb testing.TB) *stub {
	tb.Helper()
	return newStubOver(tb, nil)
}

// newStubOver is newStub over TLS, unless there is no configuration for that.
func newStubOver(tb testing.TB, config *tls.Config) *stub {
	tb.Helper()
	s := &stub{
		mux: http.NewServeMux(), ended: make(chan struct{}), password: "word", tokens: map[string]bool{}, images: map[string]*stubImage{},
		servers: map[string]*stubServer{}, ips: map[string]*stubIP{}, ports: map[string]map[string]any{}, disks: map[string]int{},
		quota: 5, free: 1000, boot: 10 * time.Millisecond, page: 1000,
		networks: []map[string]any{{"id": netPublic, "name": "public", "router:external": false}},
	}
	s.mux.HandleFunc("POST /identity/v3/auth/tokens", s.login)
	s.glance()
	s.nova()
	s.neutron()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if s.TLS = config; config != nil {
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that trust it not
		s.StartTLS()
	} else {
		s.Start()
	}
	tb.Cleanup(func() {
		close(s.ended)
		s.Close()
	})
	return s
}

// fail makes the next calls that match go wrong.
func (s *stub) fail(match string, times int, do func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &mishap{match, times, do})
}

// calm ends all faults.
func (s *stub) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// answer is a fault that answers with a status.
func answer(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		reply(w, status, map[string]any{"error": map[string]any{"message": "injected"}})
		return true
	}
}

// hangUp is a fault that ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// silence is a fault that never answers.
func (s *stub) silence(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.CopyN(io.Discard, r.Body, 1000) // of an upload, a little
	select {
	case <-r.Context().Done():
	case <-s.ended:
	}
	panic(http.ErrAbortHandler)
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Openstack-Request-Id", "req-stub")
	call := r.Method + " " + r.URL.Path
	if f := s.faultFor(call); f != nil && f.do(w, r) {
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	known := s.tokens[r.Header.Get("X-Auth-Token")]
	s.mu.Unlock()
	if !known && !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "log in first"}})
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *stub) faultFor(call string) *mishap {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.times > 0 && strings.Contains(call, f.match) {
			f.times--
			return f
		}
	}
	return nil
}

// count tells how many calls matched so far.
func (s *stub) count(match string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, call := range s.calls {
		if strings.Contains(call, match) {
			n++
		}
	}
	return n
}

// empty removes all images and servers.
func (s *stub) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.images)
	clear(s.servers)
}

// expire makes all tokens worthless.
func (s *stub) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

func (s *stub) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Password string }
				}
				Credential struct{ ID, Secret string } `json:"application_credential"`
			}
		}
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	identity := body.Auth.Identity
	if identity.Password.User.Password+identity.Credential.Secret != s.password {
		s.refusals++
		reply(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "The request you have made requires authentication."}})
		return
	}
	s.logins++
	token := fmt.Sprintf("token-%d", s.logins)
	s.tokens[token] = true
	w.Header().Set("X-Subject-Token", token)
	about := map[string]any{
		"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": s.catalog(),
		"project": map[string]any{"id": "project", "name": "ci"},
		"user":    map[string]any{"id": "user", "name": "ci", "password_expires_at": s.passwordEnds},
	}
	if id := identity.Credential.ID; id != "" {
		about["application_credential"] = map[string]any{"id": id, "name": "nodes", "restricted": true}
	}
	reply(w, http.StatusCreated, map[string]any{"token": about})
}

func (s *stub) catalog() []map[string]any {
	services := map[string]string{"image": "/image", "compute": "/compute/v2.1", "network": "/network"}
	if s.volumes != nil {
		services["volumev3"] = "/volume/v3/project"
	}
	var list []map[string]any
	for name, path := range services {
		list = append(list, map[string]any{"type": name, "name": name, "endpoints": []map[string]any{{
			"interface": "public", "region": "north", "region_id": "north", "url": s.URL + path,
		}}})
	}
	return list
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body) // the client may have left
	}
}

// clouds writes a clouds.yaml and gives the environment that names it.
func (s *stub) clouds(tb testing.TB, more string) func(string) (string, bool) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "clouds.yaml")
	s.writeClouds(tb, path, s.password, more)
	return func(name string) (string, bool) { return path, name == "OS_CLIENT_CONFIG_FILE" }
}

func (s *stub) writeClouds(tb testing.TB, path, password, more string) {
	tb.Helper()
	text := fmt.Sprintf(`clouds:
  stub:
    region_name: north
%s
    auth:
      auth_url: %s/identity/v3
      username: ci
      password: %s
      project_name: ci
`, more, s.URL, password)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// section is a provider of the configuration.
func section() configs.Provider {
	return configs.Provider{
		Name: "north", Driver: configs.DriverOpenStack, Cloud: "stub", ImageFormat: "qcow2",
		PortCleanupEvery: time.Minute, DiskImages: []configs.ProviderImage{{Name: "debian"}},
		Pools: []configs.Pool{{
			Name: "main", AutoFloatingIP: true,
			Labels: []configs.PoolLabel{{Name: "small", DiskImage: "debian", FlavorName: "ci.small", Networks: []string{"public"}}},
		}},
	}
}

// quick is a pace for tests.
func quick() pace {
	return pace{
		call: 5 * time.Second, first: time.Millisecond, longest: 10 * time.Millisecond, total: 2 * time.Second,
		poll: 5 * time.Millisecond, patience: time.Second, hearing: time.Second,
	}
}

// open opens a provider on the stub.
func (s *stub) open(tb testing.TB, cfg configs.Provider) *Provider {
	tb.Helper()
	return s.openWith(tb, cfg, s.clouds(tb, ""))
}

func (s *stub) openWith(tb testing.TB, cfg configs.Provider, env func(string) (string, bool)) *Provider {
	tb.Helper()
	p, err := New(cfg, Options{Env: env})
	if err != nil {
		tb.Fatal(err)
	}
	p.pace = quick()
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}
