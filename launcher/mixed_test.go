package launcher_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// threeClouds have labels of their own and one in common; the second has two
// pools, which share the room of their cloud.
const threeClouds = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}, {name: large}, {name: huge}]
diskimages: [{name: debian, elements: [debian]}]
providers:
  - {name: a, driver: fake, cloud: fake, diskimages: [{name: debian}],
     pools: [{name: main, max-servers: 3, labels: [{name: small, diskimage: debian, min-ram: 1024}]}]}
  - {name: b, driver: fake, cloud: fake, diskimages: [{name: debian}], fake: {max-instances: 4},
     pools: [{name: main, max-servers: 3, labels: [{name: small, diskimage: debian, min-ram: 1024}]},
             {name: side, max-servers: 2, labels: [{name: large, diskimage: debian, min-ram: 1024}]}]}
  - {name: c, driver: fake, cloud: fake, diskimages: [{name: debian}],
     pools: [{name: main, max-cores: 9, labels: [{name: small, diskimage: debian, min-ram: 1024},
                                                 {name: huge, diskimage: debian, min-ram: 1024}]}]}
`

// peak remembers the most of something.
type peak struct {
	mu   sync.Mutex
	most map[string]int
}

func (p *peak) see(name string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most[name] = max(p.most[name], n)
}

// watchPeaks notes how full clouds and pools become.
func (s *site) watchPeaks() *peak {
	p := &peak{most: map[string]int{}}
	for name, cloud := range s.clouds {
		cloud.SetHook(func(_ context.Context, c fake.Call) error {
			if c.Op != fake.OpCreate || !c.Done {
				return nil
			}
			list, err := cloud.ListNodes(context.WithoutCancel(s.t.Context())) //nolint:contextcheck // a test helper
			if err != nil {
				return err
			}
			p.see(name, len(list))
			pools := map[string]int{}
			for _, m := range list {
				pools[m.Metadata[providers.MetaPool]]++
			}
			for pool, n := range pools {
				p.see(name+"/"+pool, n)
			}
			return nil
		})
	}
	return p
}

// Launchers of different configurations serve what each can, and keep the limits
// of the providers that they share. One of them dies on the way.
func TestLaunchersOfDifferentConfigurations(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeClouds)
	s.image()
	most := s.watchPeaks()
	doomed := s.launchOnly([]string{"b", "c"})
	s.launchOnly([]string{"a"})
	s.launchOnly([]string{"a", "b", "c"})
	zktest.Eventually(t, func() bool { return len(s.pools()) == 8 }, "all registered")
	var jobs sync.WaitGroup
	for i := range 60 {
		jobs.Go(func() {
			want := wish([][]string{{"small"}, {"large"}, {"huge"}, {"small", "huge"}, {"small", "small"}, {"large", "large"}}[i%6]...)
			err := s.zuul.Run(t.Context(), want, func(nodes []*zuul.Node) error {
				if i == 30 {
					doomed.client.Close() // every lock goes
				}
				for _, n := range nodes[1:] {
					if n.Text("provider") != nodes[0].Text("provider") || n.Text("az") != nodes[0].Text("az") {
						t.Errorf("request %d is in two places", i)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	impossible := s.submit(wish("large", "huge")) // no provider has both
	jobs.Wait()
	if out := s.wait(impossible); out.State != "failed" {
		t.Errorf("%+v", out)
	}
	for name, limit := range map[string]int{"a": 3, "b": 4, "b/main": 3, "b/side": 2, "c": 2} {
		if got := most.most[name]; got > limit || got == 0 {
			t.Errorf("%d machines in %s, limit %d", got, name, limit)
		}
	}
	s.eventuallyEmpty()
}

// A request that a Nodepool's pool has declined, and that pools declined which are
// long gone, is ours to serve; the names stay.
func TestDeclinesOfOthersStay(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	id := "100-0000000000"
	s.write(zkmodel.RequestPath(id), `{"state": "requested", "node_types": ["small"],
		"declined_by": ["nl01-PoolWorker.gone-main-1", "nl02-PoolWorker.cloud-main-2"], "node_location": "x"}`)
	s.launch()
	if out := s.wait(id); out.State != "fulfilled" || strings.Join(out.DeclinedBy, " ") != "nl01-PoolWorker.gone-main-1 nl02-PoolWorker.cloud-main-2" {
		t.Errorf("%+v", out)
	}
	if data, _, err := s.store.Session().Get(t.Context(), zkmodel.RequestPath(id)); err != nil || !strings.Contains(string(data), `"node_location": "x"`) {
		t.Errorf("the foreign key is lost: %s (%v)", data, err)
	}
}

// A pool of another make with a better priority is left what it can serve, unless it
// is paused; one that declines is not waited for.
func TestPoolsOfOthersGoFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	paused := false
	leave := s.foreignPool(zkmodel.Component{
		ID: "foreign", ProviderName: "elsewhere", PoolName: "main", Priority: 5, Paused: &paused,
		SupportedLabels: zkmodel.Strings{"small"},
	})
	s.launch()
	id := s.submit(wish("small"))
	large := s.submit(wish("large"))
	if out := s.wait(large); out.State != "fulfilled" { // it was looked at after the other
		t.Fatalf("%+v", out)
	}
	if r, err := s.store.Request(t.Context(), id); err != nil || r.State != zkmodel.RequestRequested || len(r.DeclinedBy) > 0 {
		t.Fatalf("%+v (%v), want it left alone", r, err)
	}
	leave()
	if out := s.wait(id); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
}

// A provider that leaves the configuration while it launches loses the request to
// another; what it has begun is cleaned when it comes back.
func TestProviderLeavesWhileItLaunches(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoClouds)
	s.image()
	booting := s.stall()
	first := s.launchOnly([]string{"broken"}) // as it is not, here
	id := s.submit(wish("small"))
	zktest.Await(t, booting, "a machine boots")
	first.stop()
	s.clouds["cloud"].SetHook(nil)
	second := s.launchOnly([]string{"cloud"})
	out := s.wait(id)
	if out.State != "fulfilled" || s.node(out.Nodes[0]).Provider != "cloud" {
		t.Fatalf("%+v", out)
	}
	if n := s.machines("broken"); n != 1 {
		t.Errorf("%d machines in the provider that nobody can reach, want its one", n)
	}
	second.stop()
	s.launchOnly([]string{"broken", "cloud"})
	zktest.Eventually(t, func() bool { return s.machines("broken") == 0 && len(s.nodes()) == 1 }, "the rest cleaned")
}
