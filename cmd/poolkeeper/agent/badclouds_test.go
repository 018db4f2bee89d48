package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/nodes"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// TestMain leaves the machine's proxy out: it would be asked for hosts that are not there.
func TestMain(m *testing.M) {
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		_ = os.Unsetenv(name)
	}
	m.Run()
}

// noHost has a label that is longer than names may have: no resolver is asked, which on
// some machines knows every name, or never answers.
var noHost = strings.Repeat("n", 64) + ".invalid"

// A cloud that cannot be used, what is wrong with it, and which words say so.
type badCloud struct{ name, section, cloud, says string }

// badClouds are clouds that cannot be used, each for another reason.
func badClouds(t *testing.T) []badCloud {
	t.Helper()
	keystone := httptest.NewServer(http.HandlerFunc(logIn))
	t.Cleanup(keystone.Close)
	foreign := httptest.NewTLSServer(http.HandlerFunc(logIn))
	foreign.Config.ErrorLog = nil
	t.Cleanup(foreign.Close)
	at := func(url, password string) string {
		return fmt.Sprintf("{auth: {auth_url: %q, username: ci, password: %s, project_name: ci}, region_name: north}", url, password)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	return []badCloud{
		{"absent", "", "", "unknown cloud"},
		{"refusing", "", at(closed.URL+"/v3", "right"), "connection refused"},
		{"unnamed", "", at("http://"+noHost+"/v3", "right"), "lookup " + noHost},
		{"foreign", "", at(foreign.URL+"/v3", "right"), "certificate signed by unknown authority"},
		{"south", ", region-name: south", at(keystone.URL+"/v3", "right"), "region-name"},
		{"locked", "", at(keystone.URL+"/v3", "wrong-password"), "refuses our credentials"},
		{"mute", "", at("http://"+mute(t)+"/v3", "right"), "not answer"},
		{"lost", "", at(keystone.URL+"/elsewhere", "right"), "auth_url"},
	}
}

// mute is an address where connections are taken and nothing is ever said.
func mute(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel takes them
}

// logIn is a Keystone that knows one password, and services in one region.
func logIn(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != "/v3/auth/tokens":
		http.NotFound(w, r)
		return
	case !strings.Contains(body.String(), `"right"`):
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"message": "The request you have made requires authentication."}}`))
		return
	}
	var catalog []map[string]any
	for _, service := range []string{"compute", "image"} {
		catalog = append(catalog, map[string]any{"type": service, "endpoints": []map[string]any{
			{"interface": "public", "region": "north", "region_id": "north", "url": "http://" + r.Host + "/" + service},
		}})
	}
	w.Header().Set("X-Subject-Token", "a-token-of-the-test")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": catalog}})
}

// badSite is a configuration with clouds that cannot be used beside one that can.
type badSite struct {
	root, file string
	log        *diary
}

func newBadSite(t *testing.T, bad []badCloud) *badSite {
	t.Helper()
	_, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &badSite{root: zktest.Root(t), file: filepath.Join(dir, "nodepool.yaml"), log: &diary{}}
	section := func(name, driver, cloud string) string {
		return fmt.Sprintf(`  - {name: %[1]s, driver: %[2]s, cloud: %[3]s, cloud-images: [{name: image, username: zuul}],
     pools: [{name: main, max-servers: 3, labels: [{name: on-%[4]s, cloud-image: image, min-ram: 1024}]}]}
`, name, driver, cloud, strings.SplitN(name, ",", 2)[0])
	}
	text, clouds := fmt.Sprintf("zookeeper-servers: [{host: 127.0.0.1, port: %s, chroot: %s}]\nlabels:\n  - name: on-good\n", port, b.root), "clouds:\n  other: {}\n"
	providers := section("good", "fake", "fake")
	for _, c := range bad {
		text += "  - name: on-" + c.name + "\n"
		providers += section(c.name+c.section, "openstack", "cloud-of-"+c.name)
		if c.cloud != "" {
			clouds += "  cloud-of-" + c.name + ": " + c.cloud + "\n"
		}
	}
	for path, text := range map[string]string{b.file: text + "providers:\n" + providers, filepath.Join(dir, "clouds.yaml"): clouds} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", filepath.Join(dir, "clouds.yaml"))
	return b
}

// launch runs a launcher that has some of the providers, or all, until the test ends.
func (b *badSite) launch(t *testing.T, only ...string) (get func(path, accept string) (int, string)) {
	t.Helper()
	s := newSite(t)
	var err error
	if s.cfg, err = configs.Load(b.file, configs.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(only) > 0 {
		var kept []configs.Provider
		for _, name := range only {
			p, ok := s.cfg.Provider(name)
			if !ok {
				t.Fatalf("no provider %s", name)
			}
			kept = append(kept, *p)
		}
		s.cfg.Providers = kept
	}
	s.log = hclog.New(&hclog.LoggerOptions{Output: b.log})
	if s.client, err = app.Dial(s.cfg.ZooKeeper, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	server := runDaemon(t, kindLauncher, s)
	return pages(t, server)
}

// Of clouds that cannot be used the pages, the command, the metrics and the log say
// so soon, and why. What only they could serve waits; what another can is served.
func TestCloudsThatCannotBeUsed(t *testing.T) {
	bad := badClouds(t)
	site := newBadSite(t, bad)
	some, all := site.launch(t, "good"), site.launch(t)
	asker, err := zuul.Dial(t.Context(), []string{zktest.Shared(t).Addr()}, site.root, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	for _, get := range []func(string, string) (int, string){some, all} {
		zktest.Eventually(t, func() bool { code, _ := get("/ready", "*/*"); return code == http.StatusOK }, "both launchers serve")
	}
	begun := time.Now()
	ids := map[string]string{}
	for _, c := range bad {
		if ids[c.name], err = asker.Submit(zuul.Wish{Labels: []string{"on-" + c.name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := asker.Run(t.Context(), zuul.Wish{Labels: []string{"on-good"}}, nil); err != nil {
		t.Errorf("the good cloud: %v", err)
	}
	requests := func(get func(string, string) (int, string)) map[string]struct{ State, Reason string } {
		_, text := get("/request-list", "application/json")
		var list []struct{ ID, State, Reason string }
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		by := map[string]struct{ State, Reason string }{}
		for _, r := range list {
			by[r.ID] = struct{ State, Reason string }{r.State, r.Reason}
		}
		return by
	}
	command := func() string {
		var out, errs bytes.Buffer
		a := &app.App{Flags: &app.Flags{Config: site.file, Wait: 10 * time.Second}, Stdout: &out, Stderr: &errs}
		if err := (nodes.RequestListCmd{Flags: view.Flags{Forms: view.Forms{Output: "json"}}}).Run(t.Context(), a); err != nil {
			t.Fatalf("request-list: %v\n%s", err, errs.String())
		}
		return out.String()
	}
	// A call is repeated for a minute, and each label, zone and limit has one.
	within(t, 30*time.Second, func() (missing []string) {
		_, page := all("/attention", "text/html")
		_, other := some("/attention", "text/html")
		_, metrics := all("/metrics", "*/*")
		first, second, listed := requests(all), requests(some), command()
		for _, c := range bad {
			for where, text := range map[string]string{
				"page": page, "the other launcher's page": other, "log": site.log.all(),
				"request": first[ids[c.name]].Reason, "request of the other launcher": second[ids[c.name]].Reason,
				"request-list": listed,
			} {
				if !strings.Contains(text, c.says) {
					missing = append(missing, fmt.Sprintf("%s: %s lacks %q", c.name, where, c.says))
				}
			}
			if !strings.Contains(metrics, `poolkeeper_launcher_provider_usable{provider="`+c.name+`"} 0`) {
				missing = append(missing, c.name+": metric")
			}
			for _, r := range []struct{ State, Reason string }{first[ids[c.name]], second[ids[c.name]]} {
				if r.State != "requested" || strings.Contains(r.Reason, "no pool has the label") {
					missing = append(missing, fmt.Sprintf("%s: request is %s: %s", c.name, r.State, r.Reason))
				}
			}
		}
		if !strings.Contains(metrics, `poolkeeper_launcher_provider_usable{provider="good"} 1`) {
			missing = append(missing, "good: metric")
		}
		return missing
	})
	t.Logf("all is told after %s", time.Since(begun).Round(100*time.Millisecond))
	if text := site.log.all() + command(); strings.Contains(text, "wrong-password") {
		t.Error("the password is told, too")
	}
}

// within waits until nothing is missing.
func within(t *testing.T, limit time.Duration, missing func() []string) {
	t.Helper()
	end := time.Now().Add(limit)
	for {
		left := missing()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s:\n%s", limit, strings.Join(left, "\n"))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// all is the whole log.
func (d *diary) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}
