package agent

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
)

// ZooKeeper goes away under a launcher and a builder that have been ready. A liveness probe of /ready or /healthz must not kill
// them; only the strict form reports the outage. The daemons may have been ready without any client asking.
func TestOutageLeavesProbesHealthy(t *testing.T) {
	for _, kind := range []string{kindLauncher, kindBuilder} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
			_, port, err := net.SplitHostPort(proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			s := newSite(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "nodepool.yaml")
			text := fmt.Sprintf(oneServer, port, zktest.Root(t)) + "zookeeper-timeout: 4\nimages-dir: " + dir + "/images\nbuild-log-dir: " + dir + "/logs\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if s.cfg, err = configs.Load(file, configs.Options{}); err != nil {
				t.Fatal(err)
			}
			if s.client, err = app.Dial(s.cfg.ZooKeeper, hclog.NewNullLogger()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.client.Close)
			get := pages(t, runDaemon(t, kind, s))
			zktest.Eventually(t, func() bool { code, _ := get("/ready?strict=1", "*/*"); return code == http.StatusOK }, "it is ready")

			proxy.Cut()
			zktest.Eventually(t, func() bool { code, _ := get("/ready?strict=1", "*/*"); return code == http.StatusServiceUnavailable }, "the outage shows")
			for _, path := range []string{"/ready", "/healthz"} {
				if code, text := get(path, "*/*"); code != http.StatusOK || text != "OK" {
					t.Errorf("%s in an outage: %d %s", path, code, text)
				}
			}
			if _, text := get("/ready?strict=1", "application/json"); !strings.Contains(text, `"ready":false,"reason":"`) {
				t.Errorf("the reason is missing: %s", text)
			}
			proxy.Heal()
			zktest.Eventually(t, func() bool { code, _ := get("/ready?strict=1", "*/*"); return code == http.StatusOK }, "it is ready again")
		})
	}
}
