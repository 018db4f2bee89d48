package agent

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/web"
	"poolkeeper/zkmodel/recipe"
)

// newSite is a site with nothing to do.
func newSite(t *testing.T) site {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return site{
		cfg: &configs.Config{
			Path: "nodepool.yaml", ImagesDir: t.TempDir(), BuildLogDir: t.TempDir(),
			WebApp: configs.WebApp{ListenAddress: "127.0.0.1"},
		},
		client: client, log: hclog.NewNullLogger(),
	}
}

func serve(t *testing.T, s site, f webFlags) (daemon, *web.Server, error) {
	t.Helper()
	return servedBuilder(t.Context(), s, workers{}, func(o web.Options) (*web.Server, error) {
		return f.listen(t.Context(), s, builderPort, o)
	})
}

func TestBuilderServesItsPages(t *testing.T) {
	s := newSite(t)
	s.cfg.DiskImages = []configs.DiskImage{{Name: "resting", Pause: true}}
	d, server, err := serve(t, s, webFlags{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- accompany(ctx, &app.App{}, s, d, server) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := new(net.Dialer).DialContext(context.WithoutCancel(ctx), "tcp", server.Addr()); err == nil {
			t.Error("the server has outlived its daemon")
		}
	}()
	get := pages(t, server)
	zktest.Eventually(t, func() bool { code, text := get("/ready", "*/*"); return code == http.StatusOK && text == "OK" }, "it is ready")
	for path, want := range map[string]string{
		"/":               "Poolkeeper builder on",
		"/metrics":        "poolkeeper_builder_current_builds 0",
		"/dib-image-list": "| ID | Image | Builder |",

		"/images/resting":         "/images/resting/explain",
		"/images/resting/explain": "pause",
	} {
		if code, text := get(path, "*/*"); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, without %q:\n%s", path, code, want, text)
		}
	}
	if code, text := get("/log/image-0000000001", "*/*"); code != http.StatusNotFound || !strings.Contains(text, "there is no log") {
		t.Errorf("a log that is not there: %d %s", code, text)
	}
}

func TestAddressIsTaken(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.cfg.WebApp.Port = n - builderPort
	d, server, err := serve(t, s, webFlags{})
	if d == nil || server != nil || err != nil {
		t.Errorf("configured: %v, %v, %v; want a daemon without a server", d, server, err)
	}
	if _, _, err := serve(t, s, webFlags{Web: taken.Addr().String()}); err == nil {
		t.Error("an address of the command line is taken, and nobody says so")
	}
	if _, server, err := serve(t, s, webFlags{NoWebapp: true}); server != nil || err != nil {
		t.Errorf("switched off: %v, %v", server, err)
	}
}

func TestAddresses(t *testing.T) {
	if got := configuredAddr("0.0.0.0", 8005, builderPort); got != "0.0.0.0:8006" {
		t.Errorf("the builder listens on %s", got)
	}
	if got := configuredAddr("::1", 0, builderPort); got != "[::1]:0" {
		t.Errorf("for any port it listens on %s", got)
	}
	for addr, want := range map[string]string{
		"0.0.0.0:1": "us", "[::]:1": "us", "127.0.0.1:1": "127.0.0.1", "[fe80::1]:1": "fe80::1", "odd": "us",
	} {
		if got := hostOf(addr, "us"); got != want {
			t.Errorf("what listens on %s is found on %s, want %s", addr, got, want)
		}
	}
	var none *web.Server
	if got := logURL(none, "us", "image", "1"); got != "" {
		t.Errorf("without a server logs are at %s", got)
	}
}
