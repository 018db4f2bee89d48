package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// watch looks at the clouds and the tree all the time.
type watch struct {
	t      *testing.T
	client *recipe.Client
	clouds map[string]*fake.Provider

	mu     sync.Mutex
	counts map[string]int
	taken  map[string]string // node to who was given it; ids are never used again
}

func newWatch(t *testing.T, w *world) *watch {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: w.ensemble.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	v := &watch{t: t, client: client, clouds: map[string]*fake.Provider{}, counts: map[string]int{}, taken: map[string]string{}}
	for _, name := range []string{"east", "west"} {
		cloud, err := fake.New(configs.Provider{Name: name, Fake: &configs.FakeDriver{Dir: w.clouds}}, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		v.clouds[name] = cloud
		t.Cleanup(func() {
			if err := cloud.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return v
}

// run checks what must always hold, until ctx ends.
func (v *watch) run(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for name, cloud := range v.clouds {
			list, err := cloud.ListNodes(context.WithoutCancel(ctx))
			if err != nil {
				v.wrong("%v", err)
				continue
			}
			v.count("looks")
			if len(list) > maxServers {
				v.wrong("%d machines in %s, which may have %d", len(list), name, maxServers)
			}
			nodes := map[string]bool{}
			for _, m := range list {
				node := m.Metadata[providers.MetaNode]
				if nodes[node] {
					v.wrong("node %s has two machines in %s", node, name)
				}
				nodes[node] = true
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// wrong notes what must not happen.
func (v *watch) wrong(format string, args ...any) {
	v.t.Helper()
	v.count("violations")
	v.t.Errorf(format, args...)
}

// count counts.
func (v *watch) count(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[what]++
}

// take notes who was given a node; false when somebody was before.
func (v *watch) take(node, who string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	first := v.taken[node] == ""
	v.taken[node] = who
	return first
}

// report tells what has happened, and fails when nothing has.
func (v *watch) report() {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		v.t.Logf("%6d %s", v.counts[what], what)
	}
	if v.counts["jobs done"] == 0 {
		v.t.Error("no job was done")
	}
}

// settle withdraws all requests and waits until nothing is left but the stock,
// and tree and clouds agree.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), settleTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		trouble := w.watch.unsettled(ctx)
		if trouble == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Errorf("not settled within %s: %s", settleTime, trouble)
			return
		}
	}
}

// unsettled tells what is left, or "".
func (v *watch) unsettled(ctx context.Context) string {
	session, err := v.client.Session(ctx)
	if err != nil {
		return err.Error()
	}
	store := zkmodel.NewStore(session, nil)
	requests, err := store.Requests(ctx)
	if err != nil {
		return err.Error()
	}
	for _, r := range requests {
		if r.Requestor != "NodePool:min-ready" {
			if err := store.DeleteRequest(ctx, r.ID); err != nil {
				return err.Error()
			}
		}
	}
	if len(requests) > 0 {
		return fmt.Sprintf("%d requests, the first is %s of %s", len(requests), requests[0].State, requests[0].Requestor)
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return err.Error()
	}
	recorded, stock := map[string]bool{}, 0
	for _, n := range nodes {
		if n.State != zkmodel.NodeReady || n.AllocatedTo != "" || n.Locked {
			return fmt.Sprintf("node %s is %s, allocated to %q, locked: %v", n.ID, n.State, n.AllocatedTo, n.Locked)
		}
		if slices.Contains(n.Type, "small") {
			stock++
		}
		recorded[n.ExternalID.Text()] = true
	}
	if stock == 0 {
		return "nothing in stock"
	}
	for name, cloud := range v.clouds {
		list, err := cloud.ListNodes(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range list {
			if !recorded[m.ExternalID] {
				return fmt.Sprintf("machine %s in %s has no record", m.ExternalID, name)
			}
			delete(recorded, m.ExternalID)
		}
	}
	if len(recorded) > 0 {
		return fmt.Sprintf("%d nodes have no machine", len(recorded))
	}
	return ""
}
