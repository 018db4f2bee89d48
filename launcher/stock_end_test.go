package launcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// oneInStock is onePool with room for one node, and one of small in stock.
var oneInStock = strings.NewReplacer("{name: small}", "{name: small, min-ready: 1}", "max-servers: 5", "max-servers: 1").Replace(onePool)

// requests are all of the tree.
func (s *site) requests() []*zkmodel.Request {
	s.t.Helper()
	list, err := s.store.Requests(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// asNodepool rewrites a request as a Nodepool's launcher leaves it that has served
// it: what it does not know of is gone.
func (s *site) asNodepool(id, node string) {
	s.t.Helper()
	ctx := s.t.Context()
	data, stat, err := s.store.Session().Get(ctx, zkmodel.RequestPath(id))
	if err != nil {
		s.t.Fatal(err)
	}
	was, is := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(data, &was); err != nil {
		s.t.Fatal(err)
	}
	for _, key := range []string{
		"declined_by", "node_types", "reuse", "requestor", "requestor_data", "provider", "relative_priority", "event_id", "created_time", "tenant_name",
	} {
		is[key] = was[key]
	}
	is["state"], is["state_time"], is["nodes"] = "fulfilled", float64(time.Now().Unix()), []string{node}
	if data, err = json.Marshal(is); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.store.Session().Set(ctx, zkmodel.RequestPath(id), data, stat.Version); err != nil {
		s.t.Fatal(err)
	}
}

// A stock request that a Nodepool has fulfilled while the stock was full is deleted,
// and its node is free: requests of ours, and those of the first release, which stay
// when their maker goes.
func TestStockRequestFulfilledByNodepool(t *testing.T) {
	t.Parallel()
	for _, made := range []string{"by us", "by the first release"} {
		t.Run(made, func(t *testing.T) {
			s := newSite(t, oneInStock)
			s.image()
			s.orphan(zkmodel.NodeHold, nil) // takes all room
			id := "900-0000000000"
			if made != "by us" {
				s.write(zkmodel.RequestPath(id), `{"state": "requested", "node_types": ["small"], "requestor": "NodePool:min-ready"}`)
			}
			s.launch()
			zktest.Eventually(t, func() bool { return len(s.requests()) == 1 }, "one asked for")
			id = s.requests()[0].ID
			lock, _, err := s.store.LockRequest(t.Context(), id) // as a Nodepool's that serves it: else it goes as soon as the stock is full
			if err != nil {
				t.Fatal(err)
			}
			s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.Type = zkmodel.Strings{"small"} }) // the stock is full
			node := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) {
				n.Type, n.AllocatedTo, n.Requestor = zkmodel.Strings{"small"}, id, "NodePool:min-ready"
			})
			s.asNodepool(id, node)
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			zktest.Eventually(t, func() bool { return len(s.requests()) == 0 && s.node(node).AllocatedTo == "" }, "the request gone, its node free")
		})
	}
}

// Stock requests of a Nodepool's launcher are its own to end.
func TestStockRequestsOfNodepoolStay(t *testing.T) {
	t.Parallel()
	s := newSite(t, oneInStock)
	s.image()
	s.orphan(zkmodel.NodeHold, nil)
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, Requestor: "NodePool:min-ready"}
	if err := s.store.CreateBoundRequest(t.Context(), "900", r); err != nil {
		t.Fatal(err)
	}
	s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.Type = zkmodel.Strings{"small"} })
	node := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.Type, n.AllocatedTo = zkmodel.Strings{"small"}, r.ID })
	s.asNodepool(r.ID, node)
	s.launch(func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
	if out := s.wait(s.submit(wish("unknown"))); out.State != "failed" {
		t.Fatalf("%+v", out)
	}
	never(t, time.Second, func() bool { return len(s.requests()) != 2 }, "the Nodepool's request is deleted")
}

// never fails when cond becomes true within a while.
func never(t *testing.T, d time.Duration, cond func() bool, what string) {
	t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return
		case <-tick.C:
			if cond() {
				t.Fatal(what)
			}
		}
	}
}

// On the way back to Nodepool nothing is asked for any more that nobody would ever
// take away: stock requests go with their maker, however it ends.
func TestStockRequestsGoWithTheirMaker(t *testing.T) {
	t.Parallel()
	s := newSite(t, oneInStock)
	s.image()
	s.orphan(zkmodel.NodeHold, nil)
	for how, end := range map[string]func(*running){
		"stopped": func(r *running) { r.stop() },
		"killed":  func(r *running) { r.client.Close() },
	} {
		r := s.launch()
		zktest.Eventually(t, func() bool { return len(s.requests()) == 1 }, "one asked for")
		end(r)
		zktest.Eventually(t, func() bool { return len(s.requests()) == 0 }, "%s: nothing asked for", how)
	}
}

// A label that leaves the stock by a reload, which keeps the session, takes its
// requests with it at once.
func TestStockRequestsGoWithTheirLabel(t *testing.T) {
	t.Parallel()
	s := newSite(t, oneInStock)
	s.image()
	s.orphan(zkmodel.NodeHold, nil)
	service := s.serve()
	zktest.Eventually(t, func() bool { return len(s.requests()) == 1 }, "one asked for")
	without := *s.config
	without.Labels = slices.Clone(s.config.Labels)
	without.Labels[0].MinReady = 0
	if err := service.Reload(&without); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return len(s.requests()) == 0 }, "nothing asked for")
}

// When the maker of stock requests dies with its launches, others, or it when it
// is back, go on with them and make no more than are missing.
func TestStockInLaunchGoesOn(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]bool{"another goes on": true, "it comes back": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, withStock)
			s.image()
			booting, dead := make(chan struct{}, 10), make(chan struct{})
			s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
				if c.Op != fake.OpWait || c.Done {
					return nil
				}
				booting <- struct{}{}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-dead:
					return nil
				}
			})
			maker := s.launch()
			for range 3 {
				<-booting
			}
			if beside {
				s.launch()
			}
			before := fmt.Sprint(s.ids())
			maker.client.Close() // the session ends, and with it every lock and request
			if !beside {
				maker.stop()
				s.launch()
			}
			for range 3 {
				<-booting // they are waited for again
			}
			if got := fmt.Sprint(s.ids()); got != before {
				t.Errorf("nodes %s, want %s", got, before)
			}
			close(dead)
			zktest.Eventually(t, func() bool { return s.free() == 3 && len(s.requests()) == 0 }, "three in stock")
			s.settled()
			if got := fmt.Sprint(s.ids()); got != before || s.machines("cloud") != 3 {
				t.Errorf("nodes %s, want %s; %d machines, want 3", got, before, s.machines("cloud"))
			}
		})
	}
}

// ids are those of all nodes.
func (s *site) ids() []string {
	s.t.Helper()
	var ids []string
	for _, n := range s.nodes() {
		ids = append(ids, n.ID)
	}
	return ids
}

// serve runs a launcher that can be reloaded, until the test ends.
func (s *site) serve() *launcher.Service {
	s.t.Helper()
	l, err := launcher.NewService(s.config, launcher.Deps{
		Client: s.dial(10 * time.Second), Hostname: "host", Logger: s.logger(),
		Open: func(p configs.Provider) (providers.Provider, error) { return keepOpen{s.clouds[p.Name]}, nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	return l
}
