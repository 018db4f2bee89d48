package web

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/test/largesite"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/wave"
)

// rolling is the large site with sinks and a daemon that cannot be read.
func rolling(t *testing.T) Options {
	t.Helper()
	site := largesite.New(largesite.Overview, captured)
	cfg, err := site.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Events = &configs.Events{Sinks: []configs.EventSink{{Name: "chat"}, {Name: "file"}}}
	cfg.Frozen = append(cfg.Frozen, configs.Frozen{Kind: "provider", Name: "north", Why: "clouds.yaml: a sealed value cannot be read: no key opens it"})
	tree := site.Tree()
	tree.Beside.Members = append(tree.Beside.Members, fleet.Member{Name: "builder-x", Err: errors.New("the record cannot be decoded")})
	tree.Beside.Sinks = []dispatch.SinkPlace{{Sink: "chat", Next: captured.Add(-time.Hour), Letters: 3}, {Sink: "file"}}
	tree.Beside.Held = &wave.Word{By: "ann", Reason: "mirror is down"}
	return Options{Tree: tree.Web(), Config: func() *configs.Config { return cfg }, Now: clock(captured), Daemon: "launcher", Host: "nl01.example.org"}
}

// What comes into service step by step, on each page that is about it. Mistakes: a page that lacks one of it; a daemon
// that runs what all run, shown as one that does not; a link from the overview to a list without the thing.
func TestRolloutsOnThePages(t *testing.T) {
	o := rolling(t)
	for path, wants := range map[string][]string{
		"/": {
			"Coming into service", "wave openssl-2026-11", "14/25 jobs, 2 failed, 8 held", "version 8, run by 3 of 5 daemons", `<span class="st busy">canary</span>`, "10 % of new nodes",
		},
		"/attention":                    {"Sink chat does not get its events", "Sink chat has refused 3 events", "runs version 7 of 8: labels[3].name", "A secret cannot be read", "few cores left: 96 of 100", "builder-x runs cannot be read"},
		"/attention?kind=image-missing": {"is missing in rax-iad"},
		"/waves":                        {"all waves are held by ann, mirror is down", "openssl-2026-11", "14 of 25", "8 held", "weekly-47", "CVE-2026-1234"},
		"/waves?state=pending":          {"weekly-47"},
		"/daemons": {
			`<span class="st bad">config 7 of 8</span>`, `<span class="st off">config 8</span>`, "two more labels", "pushed by ben@ops1 20m", "labels[3].name", `<span class="st bad">does not get its events</span>`,
			`<span class="st good">has all</span>`,
		},
		"/daemons/builder/nb02.example.org":  {`config 7 of 8`, "gpu-large is there twice"},
		"/images/centos-9-stream":            {`<span class="st busy">canary</span>`, "canary 0000000007"},
		"/images/ubuntu-jammy-arm64":         {`<span class="st busy">on trial</span>`, "on trial 0000000007"},
		"/builds/centos-9-stream-0000000007": {`<span class="st busy">canary</span>`, "of 4 nodes"},
	} {
		page := shown(get(t, o, path))
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, page[strings.Index(page, "<main"):])
			}
		}
	}
	if page := shown(get(t, o, "/waves?state=pending")); strings.Contains(page, "CVE-2026-1234") {
		t.Error("a filter lets all waves pass")
	}
	o.Tree.Beside = nil
	if page := get(t, o, "/").Body; strings.Contains(page, "/waves") {
		t.Error("a page leads to waves where nobody knows of them")
	}
}

// What a provider's page has: limits of its cloud and of its pools, use, and what this daemon has measured of it. Mistakes: limits of the
// configuration alone; figures of another provider; an average that is not told.
func TestProviderPage(t *testing.T) {
	o := rolling(t)
	registry := prometheus.NewRegistry()
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "poolkeeper_launcher_refusals_total", Help: "What clouds refused."}, []string{"provider", "resource"})
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "poolkeeper_provider_call_seconds", Help: "How long calls took."}, []string{"provider", "call"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "poolkeeper_launcher_launch_failures_total", Help: "Launches that failed."}, []string{"provider", "error"})
	registry.MustRegister(refusals, calls, failures)
	refusals.WithLabelValues("ovh-gra1", "cores").Add(7)
	refusals.WithLabelValues("rax-iad", "cores").Add(911)
	calls.WithLabelValues("ovh-gra1", "create").Observe(1.5)
	calls.WithLabelValues("ovh-gra1", "create").Observe(0.5)
	failures.WithLabelValues("ovh-gra1", "timeout").Add(4)
	o.Gatherer = registry
	page := shown(get(t, o, "/providers/ovh-gra1"))
	for _, want := range []string{
		"Limits and use", `<td data-head="Resource">cores</td><td data-head="Used">96</td><td data-head="Limit">100</td>`, `<td data-head="Resource">instances</td><td data-head="Used">12</td><td data-head="Limit">22</td>`,
		"few cores left", "poolkeeper_launcher_refusals_total", "resource cores", ">7<", "2, 1 s each", "error timeout", ">4<",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page[strings.Index(page, "<main"):])
		}
	}
	if strings.Contains(page, "911") {
		t.Error("the page has a figure of another provider")
	}
}
