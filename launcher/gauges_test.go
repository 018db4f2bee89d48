package launcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// What Nodepool tells of nodes and requests is told here, zeros included, and goes
// on after a reload.
func TestGauges(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(beside(onePool), "labels: [", "tenant-resource-limits: [{tenant-name: t1, max-cores: 8}]\nlabels: [", 1))
	s.image()
	undisturbed := s.neighbours()
	s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.Type = zkmodel.Strings{"small", "old"} })
	s.clouds["cloud"].SetEnds(providers.End{Use: providers.EndServer, Name: "nova:443", At: time.Unix(77, 0)},
		providers.End{Use: providers.EndServer, Name: "nova:443", At: time.Unix(78, 0)}) // told twice
	s.clouds["other"].SetEnds(providers.End{Use: providers.EndCredential, Name: "nodes", At: time.Unix(88, 0)})
	registry := prometheus.NewRegistry()
	first := s.launch(func(d *launcher.Deps) { d.Registerer = registry })
	if out := s.wait(s.submit(wish("small"))); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool { // its launcher may know a moment later than we
		return gathered(t, registry)["requests_total provider=cloud pool=main result=fulfilled"] == 1
	}, "the request counted")
	first.stop()
	s.config.Providers[0].Pools[0].MaxServers = 2 // full
	second := s.launch(func(d *launcher.Deps) { d.Registerer = registry })
	s.submit(wish("large"))
	zktest.Eventually(t, func() bool {
		d := second.Decisions()
		return len(d) == 1 && d[0].Verdict() == "wait"
	}, "the second request waits")
	told := gathered(t, registry)
	for line, want := range map[string]float64{
		"addressable_requests provider=cloud pool=main":                           1,
		"open_requests state=failed":                                              0,
		"open_requests state=fulfilled":                                           1,
		"open_requests state=pending":                                             0,
		"open_requests state=requested":                                           1,
		"pool_limit provider=cloud pool=main resource=instances":                  2,
		"tenant_limit tenant=t1 resource=cores":                                   8,
		"nodes provider=cloud pool=main state=ready":                              1,
		"nodes provider=cloud pool=main state=hold":                               1,
		"nodes provider=cloud pool=main state=deleting":                           0,
		"label_nodes label=small state=ready":                                     1,
		"label_nodes label=small state=hold":                                      1,
		"label_nodes label=old state=hold":                                        1,
		"label_nodes label=large state=building":                                  0,
		"leaked_nodes_total provider=cloud":                                       0,
		"requests_total provider=cloud pool=main result=fulfilled":                1,
		"addressable_requests provider=other pool=main":                           0,
		"nodes provider=other pool=main state=ready":                              1,
		"nodes provider=other pool=main state=hold":                               1,
		"label_nodes label=tiny state=hold":                                       1,
		"requests_total provider=other pool=main result=fulfilled":                0,
		"poolkeeper_provider_certificate_expiry_timestamp_seconds provider=cloud": 77,
		"poolkeeper_provider_credential_expiry_timestamp_seconds provider=other":  88,
	} {
		if got, there := told[line]; !there || got != want {
			t.Errorf("%s %v (%t), want %v", line, got, there, want)
		}
	}
	if told["label_nodes label=old state=ready"] != 0 || len(told) < 11+2*11+1 {
		t.Errorf("%d lines", len(told))
	}
	undisturbed()
}

// Pools and providers that are gone leave no line, once they have no nodes; those that
// are left keep theirs.
func TestSeriesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(agingClouds, "      - name: main\n        max-servers: 5", "      - name: spare\n      - name: main\n        max-servers: 5", 1))
	s.image()
	registry := prometheus.NewRegistry()
	first := s.launch(func(d *launcher.Deps) { d.Registerer = registry })
	for _, label := range []string{"small", "large"} {
		if out := s.wait(s.submit(wish(label))); out.State != "fulfilled" {
			t.Fatalf("%+v", out)
		}
	}
	const gone, left = "requests_total provider=other pool=main result=fulfilled", "requests_total provider=cloud pool=main result=fulfilled"
	zktest.Eventually(t, func() bool { told := gathered(t, registry); return told[gone] == 1 && told[left] == 1 }, "both are counted")
	const spare = "launches_total provider=cloud pool=spare result=ready"
	if _, there := gathered(t, registry)[spare]; !there {
		t.Error("no line of the spare pool")
	}
	first.stop()
	s.config.Providers = s.config.Providers[:1]
	s.config.Providers[0].Pools = s.config.Providers[0].Pools[1:]
	s.launch(func(d *launcher.Deps) { d.Registerer = registry })
	zktest.Eventually(t, func() bool {
		_, there := gathered(t, registry)[spare]
		return !there
	}, "a pool without nodes has no line")
	if told := gathered(t, registry); told[left] != 1 || told[gone] != 1 {
		t.Errorf("%v of cloud, %v of other, which has a node", told[left], told[gone])
	}
	for _, n := range s.nodes() {
		if n.Provider == "other" {
			if err := s.store.Session().DeleteTree(t.Context(), n.Path()); err != nil {
				t.Fatal(err)
			}
		}
	}
	zktest.Eventually(t, func() bool {
		told := gathered(t, registry)
		for line := range told {
			if strings.Contains(line, "provider=other") {
				return false
			}
		}
		return told[left] == 1
	}, "a provider without nodes has no line")
}

// gathered is what a registry tells, one "name label=value…" each; names without
// what is common to all.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			values := map[string]string{}
			for _, pair := range metric.GetLabel() {
				values[pair.GetName()] = pair.GetValue()
			}
			line := strings.TrimPrefix(family.GetName(), "poolkeeper_launcher_")
			for _, name := range []string{"provider", "pool", "label", "tenant", "state", "result", "resource"} {
				if value, there := values[name]; there {
					line += " " + name + "=" + value
				}
			}
			told[line] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return told
}
