package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/statsd"
	"poolkeeper/test/statsdtest"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/web"
)

// oneServer is a launcher's configuration with room for one node.
const oneServer = `
zookeeper-servers: [{host: 127.0.0.1, port: %s, chroot: %s}]
labels: [{name: label-0}, {name: label-1}]
providers:
  - name: fake-provider-1
    driver: fake
    cloud: fake
    cloud-images: [{name: image, username: zuul}]
    pools:
      - name: main
        max-servers: 1
        labels: [{name: label-0, cloud-image: image, min-ram: 1024}, {name: label-1, cloud-image: image, min-ram: 1024}]
`

// pages fetches pages of a server.
func pages(t *testing.T, server *web.Server) func(path, accept string) (int, string) {
	t.Helper()
	return func(path, accept string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
}

// runDaemon runs a daemon of a kind with its pages until the test ends.
func runDaemon(t *testing.T, kind string, s site) *web.Server {
	t.Helper()
	listen := func(o web.Options) (*web.Server, error) {
		return webFlags{Web: "127.0.0.1:0"}.listen(t.Context(), s, 0, o)
	}
	var d daemon
	var server *web.Server
	var err error
	if kind == kindLauncher {
		d, server, err = servedLauncher(t.Context(), s, listen)
	} else {
		d, server, err = servedBuilder(t.Context(), s, workers{}, listen)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- accompany(ctx, &app.App{}, s, d, server) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return server
}

// servingLauncher runs a launcher with its pages until the test ends, and a Zuul.
func servingLauncher(t *testing.T, config string, before ...func(*site)) (get func(path, accept string) (int, string), asker *zuul.Client) {
	t.Helper()
	s := newSite(t)
	host, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	root := zktest.Root(t)
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, port, root), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.cfg, err = configs.Load(file, configs.Options{}); err != nil {
		t.Fatal(err)
	}
	if s.client, err = app.Dial(s.cfg.ZooKeeper, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	for _, do := range before {
		do(&s)
	}
	server := runDaemon(t, kindLauncher, s)
	if asker, err = zuul.Dial(t.Context(), []string{net.JoinHostPort(host, port)}, root, "zuul"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	return pages(t, server), asker
}

// A launcher serves Nodepool's listings of nodes, requests and labels, says why a
// request waits, and is ready when it serves requests.
func TestLauncherServesItsPages(t *testing.T) {
	figures := statsdtest.Start(t)
	get, asker := servingLauncher(t, strings.Replace(oneServer, "{name: label-1}]", "{name: label-1}, {name: label-2}]", 1)+`
  - name: fake-provider-2
    driver: fake
    cloud: fake
    cloud-images: [{name: image, username: zuul}]
    pools: [{name: main, max-servers: 1, labels: [{name: label-2, cloud-image: image, min-ram: 1024}]}]
`, func(s *site) { s.statsd = statsd.New(figures.Address) })
	zktest.Eventually(t, func() bool { code, text := get("/ready", "*/*"); return code == http.StatusOK && text == "OK" }, "it is ready")
	var ids []string
	for range 2 {
		id, err := asker.Submit(zuul.Wish{Labels: []string{"label-0"}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if _, err := asker.Wait(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := asker.Submit(zuul.Wish{Labels: []string{"label-2"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asker.Wait(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		return slices.Contains(figures.Lines(), "nodepool.launch.provider.fake-provider-2.ready:1|c")
	}, "statsd is told of launches")
	const full = `"reason": "pool main is full: instances 1 used, 1 needed, limit 1"`
	zktest.Eventually(t, func() bool {
		_, text := get("/request-list", "application/json")
		return strings.Contains(text, `"id": "`+ids[0]+`", "relative_priority": 0, "state": "fulfilled"`) &&
			strings.Contains(text, `"id": "`+ids[1]+`", "relative_priority": 0, "state": "requested"`) && strings.Contains(text, full)
	}, "both requests, and why one waits")
	for _, want := range []struct{ path, accept, text string }{
		{"/", "text/html", "the pool: instances: 1 of 1 in use"},
		{"/requests", "text/html", "pool main is full"},
		{"/node-list", "text/plain", "| 0000000000 | fake-provider-1 | label-0 |"},
		{"/node-list", "text/plain", "| 0000000001 | fake-provider-2 | label-2 |"},
		{"/label-list", "application/json", `{"label": "label-2", "pools": ["fake-provider-2-main"]`},
		{"/metrics", "*/*", `poolkeeper_launcher_nodes{pool="main",provider="fake-provider-2",state="ready"} 1`},
		{"/node-list?node_id=0000000000", "application/json", `[{"id": "0000000000", "provider": "fake-provider-1", "label": ["label-0"]`},
		{"/node-list?node_id=0000000007", "application/json", "[]"},
		{"/label-list", "text/plain", "| label-1 |"},
		{"/label-list", "application/json", `{"label": "label-1", "pools": ["fake-provider-1-main"]`},
		{"/metrics", "*/*", `poolkeeper_launcher_nodes{pool="main",provider="fake-provider-1",state="ready"} 1`},
		{"/metrics", "*/*", `poolkeeper_launcher_open_requests{state="requested"} 1`},
		{"/image-list", "application/json", "[]"},
	} {
		if code, text := get(want.path, want.accept); code != http.StatusOK || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d, without %q:\n%s", want.path, code, want.text, text)
		}
	}
	if code, _ := get("/nope", "text/plain"); code != http.StatusNotFound {
		t.Errorf("/nope: %d", code)
	}
}
