package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tree is a tree that does not change by itself.
type tree struct {
	nodes    []*zkmodel.Node
	requests []*zkmodel.Request
	pools    []*zkmodel.Component
}

func (t *tree) Nodes() []*zkmodel.Node       { return t.nodes }
func (t *tree) Requests() []*zkmodel.Request { return t.requests }

func (t *tree) Components(string) []*zkmodel.Component { return t.pools }

// site is a configuration with one pool main, of label small, in each provider.
func site(seen *tree, names ...string) *Source {
	of := &Source{
		Config: &configs.Config{Labels: []configs.Label{{Name: "small"}}},
		Tree:   seen, Complete: func() error { return nil }, Usable: map[string]func() bool{},
		Elected: func() bool { return true },
		Clouds:  map[string]func() Cloud{}, Known: func() map[string]registry.Knowledge { return nil }, Decisions: func() []schedule.Decision { return nil }, Now: func() time.Time { return time.Unix(1000, 0) },
	}
	for _, name := range names {
		section := configs.Pool{Name: "main", MaxServers: 3, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1, Labels: []configs.PoolLabel{{Name: "small"}}}
		provider := configs.Provider{Name: name, Pools: []configs.Pool{section}}
		of.Config.Providers = append(of.Config.Providers, provider)
		of.Pools = append(of.Pools, pool.New("host", provider, section))
		of.Usable[name] = func() bool { return name != "down" }
		of.Clouds[name] = func() Cloud { return Cloud{} }
	}
	return of
}

// told is what a registry tells, one "name label=value…" each; names without what is
// common to all, and of histograms how often something was observed.
func told(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			line := strings.TrimPrefix(family.GetName(), "poolkeeper_launcher_")
			for _, pair := range metric.GetLabel() {
				line += " " + pair.GetName() + "=" + pair.GetValue()
			}
			lines[line] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return lines
}

// expect compares lines with what a registry tells; -1 is a line that is not to be there.
func expect(t *testing.T, registry *prometheus.Registry, want map[string]float64) {
	t.Helper()
	lines := told(t, registry)
	for line, value := range want {
		got, there := lines[line]
		if there != (value >= 0) || there && got != value {
			t.Errorf("%s: %v (there: %t), want %v", line, got, there, value)
		}
	}
}

func made(t *testing.T, registry *prometheus.Registry, of *Source) *Metrics {
	t.Helper()
	m, err := New(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Tell(of)
	return m
}

// Every state of our pools and labels is told of, as 0 where there is nothing: a state
// that is left out is a line in a graph that stands still at its last value. Records that
// cannot be decoded are in no state.
func TestGaugesTellOfEveryState(t *testing.T) {
	seen := &tree{
		nodes: []*zkmodel.Node{
			{Provider: "cloud", Pool: "main", State: zkmodel.NodeReady, Type: zkmodel.Strings{"small", "old"}, Validates: "upload"},
			{Provider: "cloud", Pool: "main", State: zkmodel.NodeReady, Type: zkmodel.Strings{"small"}, Broken: errors.New("no JSON")},
		},
		requests: []*zkmodel.Request{
			{State: zkmodel.RequestRequested, NodeTypes: []string{"small"}},
			{State: zkmodel.RequestRequested, NodeTypes: []string{"large"}},
			{State: zkmodel.RequestPending, Broken: errors.New("no JSON")},
		},
	}
	registry := prometheus.NewRegistry()
	of := site(seen, "cloud", "down")
	of.Config.TenantLimits = []configs.TenantLimit{{Tenant: "t1", Limits: providers.Resources{providers.Cores: 8}}}
	of.Config.DiskImages = []configs.DiskImage{{Name: "debian", Canary: &configs.Canary{}}, {Name: "fedora"}}
	of.Image = func(name string) *zkmodel.Image {
		trial := &zkmodel.Trial{Nodes: 3}
		counts := map[string]zkmodel.CanaryCounts{"one": {Canary: zkmodel.Tally{Failed: 1}, Previous: zkmodel.Tally{Nodes: 40}}}
		return &zkmodel.Image{Name: name, Canaries: []*zkmodel.Canary{
			{Provider: "cloud", Image: name, Trial: trial, Counts: counts}, {Provider: "down", Image: name},
		}}
	}
	made(t, registry, of)
	want := map[string]float64{
		"canary_nodes build=canary image=debian provider=cloud result=begun":   3,
		"canary_nodes build=canary image=debian provider=cloud result=failed":  1,
		"canary_nodes build=previous image=debian provider=cloud result=begun": 40,
		"canary_nodes build=previous image=debian provider=cloud result=short": 0,
		"canary_nodes build=canary image=debian provider=down result=begun":    -1,
		"canary_nodes build=canary image=fedora provider=cloud result=begun":   -1,
		"label_nodes label=old state=ready":                                    1,
		"label_nodes label=old state=hold":                                     -1, // not a label of ours
		"open_requests state=requested":                                        2,
		"open_requests state=pending":                                          0,
		"open_requests state=failed":                                           0,
		"addressable_requests pool=main provider=cloud":                        1,
		"pool_limit pool=main provider=cloud resource=instances":               3,
		"pool_limit pool=main provider=cloud resource=cores":                   -1,
		"tenant_limit resource=cores tenant=t1":                                8,
		"provider_usable provider=cloud":                                       1,
		"validation_nodes provider=cloud":                                      1,
		"validation_nodes provider=down":                                       0,
		"provider_usable provider=down":                                        0,
		"elected":                                                              1,
	}
	for _, state := range zkmodel.NodeStates() {
		want[fmt.Sprintf("nodes pool=main provider=down state=%s", state)] = 0
	}
	want["nodes pool=main provider=cloud state=ready"] = 1
	expect(t, registry, want)
}

// Counters are there before they count, so that the first launch is seen as a step from
// 0 and not as the beginning of a line.
func TestCountersBeginAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	made(t, registry, site(&tree{}, "cloud"))
	expect(t, registry, map[string]float64{
		"launches_total pool=main provider=cloud result=ready":       0,
		"launches_total pool=main provider=cloud result=error.quota": 0,
		"requests_total pool=main provider=cloud result=fulfilled":   0,
		"nodes_deleted_total provider=cloud":                         0,
		"leaked_nodes_total provider=cloud":                          0,
	})
}

// What happens is counted under the pool that it happened in; a request that was
// cancelled has no place among how long fulfilled ones took.
func TestCounters(t *testing.T) {
	registry := prometheus.NewRegistry()
	of := site(&tree{}, "cloud", "other")
	m := made(t, registry, of)
	m.launch(of.Pools[0], nil, time.Second)
	m.launch(of.Pools[0], fmt.Errorf("create: %w", providers.ErrQuota), time.Second)
	m.Fulfilled(of.Pools[1], -time.Second) // our clock is behind
	m.Cancelled(of.Pools[1])
	m.Declined(zkmodel.RequestFailed)
	m.Deleted("cloud")
	m.Leaked("other")
	expect(t, registry, map[string]float64{
		"launches_total pool=main provider=cloud result=ready":       1,
		"launches_total pool=main provider=cloud result=error.quota": 1,
		"launch_seconds pool=main provider=cloud result=ready":       1,
		"requests_total pool=main provider=other result=fulfilled":   1,
		"requests_total pool=main provider=other result=cancelled":   1,
		"request_seconds pool=main provider=other":                   1,
		"declines_total state=failed":                                1,
		"nodes_deleted_total provider=cloud":                         1,
		"leaked_nodes_total provider=other":                          1,
	})
}

// A launcher with another configuration goes on with the figures, and what it does not
// have leaves no line behind once its nodes are gone, nor before the tree is seen whole.
func TestPoolsThatAreGoneAreForgotten(t *testing.T) {
	registry := prometheus.NewRegistry()
	first := site(&tree{}, "cloud", "other", "third")
	m := made(t, registry, first)
	for _, p := range first.Pools {
		m.Fulfilled(p, time.Second)
	}
	seen := &tree{nodes: []*zkmodel.Node{{Provider: "other", Pool: "main", State: zkmodel.NodeInUse}}}
	next := site(seen, "cloud")
	reading := errors.New("tree is being read")
	next.Complete = func() error { return reading }
	made(t, registry, next)
	const cloud, other, third = "requests_total pool=main provider=cloud result=fulfilled",
		"requests_total pool=main provider=other result=fulfilled", "requests_total pool=main provider=third result=fulfilled"
	told(t, registry) // what is forgotten is gone in the next one at the latest
	expect(t, registry, map[string]float64{cloud: 1, other: 1, third: 1})
	reading = nil
	told(t, registry) // what is forgotten is gone in the next one at the latest
	expect(t, registry, map[string]float64{cloud: 1, other: 1, third: -1})
	seen.nodes = nil
	told(t, registry) // what is forgotten is gone in the next one at the latest
	expect(t, registry, map[string]float64{cloud: 1, other: -1, "nodes_deleted_total provider=other": -1, "nodes_deleted_total provider=cloud": 0})
}

// A name that something else has registered is an error, not figures that nobody reads.
func TestNamesThatAreTaken(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "poolkeeper_launcher_leaked_nodes_total"}))
	if _, err := New(registry, nil); err == nil {
		t.Error("made although a name is taken")
	}
	if _, err := New(nil, nil); err != nil {
		t.Errorf("without a registry: %v", err)
	}
}

// The outcomes of launches are Nodepool's names; graphs of a site that migrated ask for them.
func TestLaunchResults(t *testing.T) {
	for want, err := range map[string]error{
		"ready":                     nil,
		"error.quota":               providers.ErrQuota,
		"error.keyscan":             node.ErrKeyScan,
		"error.image":               pool.ErrNoImage,
		"error.status":              providers.ErrNodeFailed,
		"error.servercreatetimeout": context.DeadlineExceeded,
		"error.unknown":             errors.New("?"),
	} {
		if err != nil {
			err = fmt.Errorf("launch: %w", err)
		}
		if got := launchResult(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// Each reason has the age of its oldest request, 0 where none waits: a reason that is left
// out stays in a graph as it was. Nobody waits for what a launcher asks for its stock: that
// is to wake nobody. What nodes take counts by their provider, also where the
// cloud tells no limit; a duty is had by one launcher, and none of another configuration stays.
func TestGaugesTellOfWaitingAndRoom(t *testing.T) {
	at := func(seconds int64) recipe.Stat { return recipe.Stat{Ctime: time.Unix(seconds, 0)} }
	requests := []*zkmodel.Request{
		{ID: "1", State: zkmodel.RequestRequested, Stat: at(900)},
		{ID: "2", State: zkmodel.RequestRequested, Stat: at(800)},
		{ID: "3", State: zkmodel.RequestRequested, Stat: at(700)},
		{ID: "4", State: zkmodel.RequestRequested, Stat: at(990)},
		{ID: "5", State: zkmodel.RequestFulfilled, Stat: at(1)},
		{ID: "6", State: zkmodel.RequestRequested, Stat: at(1), Broken: errors.New("no JSON")},
		{ID: "7", State: zkmodel.RequestRequested, Stat: at(1), Requestor: schedule.MinReadyRequestor},
	}
	seen := &tree{requests: requests, nodes: []*zkmodel.Node{
		{Provider: "north", Pool: "main", Resources: providers.Resources{providers.Instances: 1, providers.Cores: 4}},
		{Provider: "north", Pool: "main", Type: zkmodel.Strings{"small"}, State: zkmodel.NodeHold},
		{Provider: "north", Pool: "main", Broken: errors.New("no JSON")},
	}}
	of := site(seen, "north", "south")
	about := func(i int) schedule.About { return schedule.About{Request: requests[i], Reason: "why"} }
	of.Decisions = func() []schedule.Decision {
		return []schedule.Decision{
			schedule.Wait{About: about(0), Cause: schedule.Quota}, schedule.Wait{About: about(1), Cause: schedule.Quota}, schedule.Yield{About: about(2)},
		}
	}
	of.Clouds["north"] = func() Cloud {
		return Cloud{
			Limits: providers.Resources{providers.Cores: 16}, Failures: 2,
			Needs: map[string]map[string]schedule.Offer{"main": {"small": {Needs: providers.Resources{providers.Instances: 1, providers.Cores: 2}}}},
		}
	}
	of.Stocked = []configs.Label{{Name: "small", MinReady: 7}}
	registry := prometheus.NewRegistry()
	m := made(t, registry, of)
	m.Duty("stock", "small", true)
	m.Duty("stock", "large", false)
	expect(t, registry, map[string]float64{
		"oldest_request_seconds reason=quota":          200,
		"oldest_request_seconds reason=others":         300,
		"oldest_request_seconds reason=undecided":      10,
		"oldest_request_seconds reason=tenant":         0,
		"quota_limit provider=north resource=cores":    16,
		"quota_limit provider=south resource=cores":    -1,
		"quota_used provider=north resource=cores":     6,
		"quota_used provider=north resource=instances": 2,
		"quota_used provider=south resource=instances": 0,
		"provider_refusals provider=north":             2,
		"provider_refusals provider=south":             0,
		"min_ready label=small":                        7,
		"duty duty=stock of=small":                     1,
		"duty duty=stock of=large":                     0,
	})
	m.NoDuties()
	expect(t, registry, map[string]float64{"duty duty=stock of=small": -1})
}
