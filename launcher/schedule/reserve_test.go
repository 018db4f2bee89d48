package schedule

import (
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: stock is launched with the room that a pending request waits for. The launcher evicts
// the stock for the request, the stock is missing, and is launched again.
func TestStockLeavesRoomToRequests(t *testing.T) {
	four := func(change ...func(*Pool)) *Pool {
		return aPool(append([]func(*Pool){func(p *Pool) { p.Limits[providers.Instances] = 4 }}, change...)...)
	}
	second := func(limit int) *Pool {
		return four(func(p *Pool) { p.ID, p.Name, p.Limits[providers.Instances] = "launcher-cloud-second", "second", limit })
	}
	inSecond := func(id string, state zkmodel.NodeState) *zkmodel.Node {
		n := aNode(id, state, "a")
		n.Pool = "second"
		return n
	}
	ram := func(p *Pool) { p.Limits, p.Cloud = nil, providers.Resources{providers.RAM: 4096} }
	large, small := []string{"b", "b", "b", "b"}, []string{"b", "b"}
	for name, c := range map[string]struct {
		pools  []*Pool
		nodes  []*zkmodel.Node
		labels []string
		busy   bool // the request is left alone for a moment
		tenant string
		want   string // of the request and the stock
	}{
		"stock was evicted":          {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeDeleting, "a")}, large, false, "", "wait wait"},
		"two are in use":             {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), aNode("8", zkmodel.NodeInUse, "a"), aNode("9", zkmodel.NodeDeleting, "a")}, small, false, "", "wait wait"},
		"room for both":              {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, small, false, "", "accept accept"},
		"no room for stock":          {[]*Pool{four()}, nil, large, false, "", "accept wait"},
		"waits for either pool":      {[]*Pool{four(), second(4)}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), inSecond("8", zkmodel.NodeInUse)}, large, false, "", "wait wait"},
		"another pool is too small":  {[]*Pool{four(), second(2)}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, large, false, "", "wait accept"},
		"the provider is full":       {[]*Pool{four(ram), second(2)}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, large, false, "", "wait wait"},
		"left alone":                 {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, large, true, "", "wait"},
		"left alone, room for both":  {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, small, true, "", "accept"},
		"its tenant is at its limit": {[]*Pool{four()}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, small, false, "red", "wait accept"},
	} {
		r, stock := aRequest("100-1", c.labels...), aRequest("900-2", "a")
		stock.Requestor, r.TenantName, r.Reuse = MinReadyRequestor, c.tenant, false
		s := at(c.pools, c.nodes, []*zkmodel.Request{r, stock}, time.Second)
		s.Busy, s.Tenants = map[string]bool{r.ID: c.busy}, map[string]providers.Resources{"red": {providers.Instances: 1}}
		if c.tenant != "" {
			c.nodes[0].TenantName = c.tenant
		}
		if name == "the provider is full" {
			c.pools[1].Cloud = c.pools[0].Cloud
		}
		decisions := Assign(s)
		if got := verdicts(decisions); got != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, got, c.want, decisions[len(decisions)-1].Why())
		}
	}
}

// Mistake: a request that comes later takes the room of a node that was evicted for another.
func TestFreedRoomIsReserved(t *testing.T) {
	for name, c := range map[string]struct {
		size    int // of the pool
		leaves  int // instances of the node on its way out
		age     time.Duration
		reason  string
		evicted bool // by this launcher, a moment ago
		want    string
	}{
		"evicted":           {4, 1, time.Second, EvictedReason, false, "wait wait"},
		"not marked yet":    {4, 1, time.Second, "", true, "wait wait"},
		"room beside it":    {5, 2, time.Second, EvictedReason, false, "wait accept"},
		"deleted for age":   {4, 1, time.Second, "it was ready for 1h", false, "wait accept"},
		"deletion is stuck": {4, 1, overtakeTime, EvictedReason, false, "wait accept"},
	} {
		p := aPool(func(p *Pool) { p.Limits[providers.Instances] = c.size })
		leaving := aNode("9", zkmodel.NodeDeleting, "a")
		leaving.Resources[providers.Instances] = c.leaves
		now := time.Unix(1_000_000, 0)
		leaving.Reason, leaving.StateTime, leaving.Stat = c.reason, zkmodel.EpochOf(now.Add(-c.age)), recipe.Stat{Mtime: now.Add(-c.age)}
		if c.evicted {
			leaving.State = zkmodel.NodeReady
		}
		nodes := []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), aNode("8", zkmodel.NodeInUse, "a"), leaving}
		first, second := aRequest("100-1", "b", "b"), aRequest("100-2", "b")
		s := at([]*Pool{p}, nodes, []*zkmodel.Request{first, second})
		s.Now, s.Evicted = now, map[string]bool{leaving.ID: c.evicted}
		first.Stat.Ctime, second.Stat.Ctime = now, now
		decisions := Assign(s)
		if got := verdicts(decisions); got != c.want {
			t.Errorf("%s: %s, want %s (%s)", name, got, c.want, decisions[1].Why())
		}
	}
}
