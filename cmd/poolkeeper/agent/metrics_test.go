package agent

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/promtool"
	"poolkeeper/test/records"
	"poolkeeper/test/zktest"
	"poolkeeper/web"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/figures"
)

// watchedSite is a configuration of three images and two providers, in which nothing is built.
const watchedSite = `
zookeeper-servers: [{host: 127.0.0.1, port: %s, chroot: %s}]
images-dir: %s
build-log-dir: %s
webapp: {port: 0, listen_address: 127.0.0.1, history: {dir: %s}}
labels: [{name: small, min-ready: 1}, {name: large}]
diskimages:
  - {name: debian, elements: [vm], formats: [qcow2], rebuild-age: 0, rebuild-schedule: "0 3 1 * *"}
  - {name: fedora, elements: [vm], formats: [qcow2], pause: true}
  - {name: suse, elements: [vm], formats: [qcow2], pause: true}
providers:
  - &north
    name: north
    driver: fake
    cloud: fake
    diskimages: [{name: debian}, {name: fedora}, {name: suse}]
    pools:
      - name: main
        max-servers: 3
        labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: large, diskimage: suse, min-ram: 1024}]
  - <<: *north
    name: south
`

// watchedDaemons runs a builder and a launcher over a tree in which
// debian serves in both providers, and fedora and suse nowhere.
func watchedDaemons(t *testing.T) map[string]*web.Server {
	t.Helper()
	_, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	file, servers := filepath.Join(t.TempDir(), "nodepool.yaml"), map[string]*web.Server{}
	if err := os.WriteFile(file, fmt.Appendf(nil, watchedSite, port, zktest.Root(t), t.TempDir(), t.TempDir(), t.TempDir()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{kindBuilder, kindLauncher} {
		s := site{log: hclog.NewNullLogger(), reloads: figures.NewReloads(time.Now()), guarded: &guarded{kind: kind, host: "host"}}
		if s.cfg, err = configs.Load(file, configs.Options{}); err != nil {
			t.Fatal(err)
		}
		if s.client, err = app.Dial(s.cfg.ZooKeeper, s.log); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.client.Close)
		s.process, s.beside = newProcess(), &beside{}
		s.events = app.NewEvents(s.client, s.process, s.log, kind, "host")
		if kind == kindBuilder {
			session, err := s.client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := records.BuiltAndUploaded(t.Context(), zkmodel.NewStore(session, nil), "debian", "north", "south"); err != nil {
				t.Fatal(err)
			}
		}
		servers[kind] = runDaemon(t, kind, s)
	}
	return servers
}

// metricRow is a row of the table of metrics.
var metricRow = regexp.MustCompile("(?m)^\\| `(poolkeeper_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\| (counter|gauge|histogram) \\| ([a-z, ]+) \\|")

// metricsPage is docs/metrics.md: the type of each metric, by name.
func metricsPage(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, row := range metricRow.FindAllStringSubmatch(string(text), -1) {
		types[row[1]] = row[3]
	}
	if rows := strings.Count(string(text), "| `poolkeeper_"); rows != len(types) || rows == 0 {
		t.Fatalf("docs/metrics.md has %d rows, %d of them in shape and of one name", rows, len(types))
	}
	return types
}

// scrapedNow are the metrics of a daemon.
func scrapedNow(t *testing.T, server *web.Server) string {
	t.Helper()
	code, text := pages(t, server)("/metrics", "text/plain")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", code, text)
	}
	return text
}

// What both daemons tell is in docs/metrics.md, by its type, and what that page tells is in
// the code. Mistakes: a metric that nobody can know of; one that was renamed, for which the
// operators' alarms wait for ever. promtool judges the names and helps.
func TestMetrics(t *testing.T) {
	t.Parallel()
	servers := watchedDaemons(t)
	for kind, server := range servers {
		want := []string{
			`poolkeeper_build_info{goversion="`, `poolkeeper_image_ready{image="debian",provider="north"} 1`,
			`poolkeeper_image_ready{image="debian",provider="south"} 1`, `poolkeeper_image_ready{image="suse",provider="north"} 0`,
			`poolkeeper_image_ready_timestamp_seconds{image="debian",provider="north"} `, `poolkeeper_image_paused{image="fedora"} 1`, `poolkeeper_image_paused{image="debian"} 0`,
			"poolkeeper_zookeeper_session 1", "poolkeeper_zookeeper_sessions_total 1", `poolkeeper_zookeeper_request_seconds_count{operation="read"} `,
			"poolkeeper_configuration_last_reload_successful 1", `poolkeeper_components{kind="pool"} 2`, `poolkeeper_components{kind="builder"} 1`,
		}
		if kind == kindLauncher {
			want = append(want, `poolkeeper_launcher_duty{duty="tidy",of=""} 1`, `poolkeeper_launcher_duty{duty="provider",of="south"} 1`,
				`poolkeeper_launcher_duty{duty="stock",of="small"} 1`, `poolkeeper_launcher_oldest_request_seconds{reason="quota"} 0`,
				`poolkeeper_launcher_min_ready{label="small"} 1`, `poolkeeper_launcher_quota_used{provider="north",resource="instances"} 1`)
		} else {
			want = append(want, "poolkeeper_builder_disk_free_bytes ", `poolkeeper_builder_waiting_actions{action="build"} `,
				`poolkeeper_builder_image_due_timestamp_seconds{image="debian"} `)
		}
		t.Cleanup(func() {
			if len(want) > 0 {
				t.Errorf("the %s does not tell %q", kind, want)
			}
		})
		zktest.Eventually(t, func() bool {
			text := scrapedNow(t, server)
			want = slices.DeleteFunc(want, func(line string) bool { return strings.Contains(text, "\n"+line) })
			return len(want) == 0
		}, "the %s tells of all", kind)
	}
	for kind, server := range servers { // each has what it saw, in a file of its own
		zktest.Eventually(t, func() bool {
			code, text := pages(t, server)("/history.json?image=debian&outcome=succeeded", "application/json")
			return code == http.StatusOK && strings.Count(text, `"kind":"upload"`) == 2 && strings.Count(text, `"kind":"build"`) == 1
		}, "the history of the %s", kind)
	}
	page, code := metricsPage(t), sources(t)
	for kind, server := range servers {
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (poolkeeper_\S+) (\S+)$`).FindAllStringSubmatch(scrapedNow(t, server), -1) {
			if page[m[1]] != m[2] {
				t.Errorf("the %s has the %s %s, docs/metrics.md says %q", kind, m[2], m[1], page[m[1]])
			}
		}
	}
	for name := range page {
		short := regexp.MustCompile(`^poolkeeper_(builder_|launcher_)?`).ReplaceAllString(name, "")
		if !strings.Contains(code, `"`+short+`"`) && !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("docs/metrics.md tells of %s, and no code does", name)
		}
	}
	tool := promtool.Path(t, "promtool")
	for kind, server := range servers {
		check := exec.CommandContext(t.Context(), tool, "check", "metrics")
		check.Stdin = strings.NewReader(scrapedNow(t, server))
		if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool on the metrics of the %s: %v\n%s", kind, err, out)
		}
	}
}

// sources is all Go code that is no test.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, top := range []string{"builder", "launcher", "providers", "zkmodel", "cmd", "web"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
