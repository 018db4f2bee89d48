package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Requests are spread over the launchers; each is taken by one first, and by the
// others after the grace.
func TestPreferredPool(t *testing.T) {
	const count = 200
	takers := map[string]int{}
	for i := range count {
		r := aRequest(fmt.Sprintf("200-%010d", i), "a")
		for _, own := range []string{"x", "y", "z"} {
			pool := aPool(func(p *Pool) { p.ID = own })
			now := time.Unix(1000, 0)
			snap := &Snapshot{
				Now: now, Grace: time.Second, Requests: []*zkmodel.Request{r}, Pools: []*Pool{pool},
				Registered: []*zkmodel.Component{other("x", "cloud", 100, "a"), other("y", "cloud", 100, "a"), other("z", "cloud", 100, "a")},
			}
			d := Assign(snap)[0]
			if d.Verdict() == "accept" {
				takers[own]++
				continue
			}
			if d, leaves := d.(Yield); !leaves || d.Since.IsZero() || !d.Again.Equal(now.Add(time.Second)) {
				t.Fatalf("%+v", d)
			}
			snap.Since = map[string]time.Time{r.ID: now.Add(-time.Second)}
			if d := Assign(snap)[0]; d.Verdict() != "accept" {
				t.Fatalf("after the grace: %+v", d)
			}
			snap.Since, snap.Registered = nil, nil // the others have died
			if d := Assign(snap)[0]; d.Verdict() != "accept" {
				t.Fatalf("alone: %+v", d)
			}
		}
	}
	if total := takers["x"] + takers["y"] + takers["z"]; total != count {
		t.Errorf("%d requests were taken by %d launchers", count, total)
	}
	for own, n := range takers {
		if n < count/6 {
			t.Errorf("launcher %s takes %d of %d", own, n, count)
		}
	}
}

// Whoever does not hold the quota's lock launches nothing, but reuses.
func TestQuotaOfAnother(t *testing.T) {
	snap := &Snapshot{
		Now: time.Unix(1000, 0), Pools: []*Pool{aPool(func(p *Pool) { p.HoldsQuota = false })},
		Nodes:    []*zkmodel.Node{aNode("7", "ready", "b")},
		Requests: []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "b")},
	}
	got := Assign(snap)
	if w, waits := got[0].(Wait); !waits || !w.NeedsQuota {
		t.Errorf("new node: %+v", got[0])
	}
	if got[1].Verdict() != "accept" {
		t.Errorf("ready node: %+v", got[1])
	}
}

// A smaller request may go past one that waits, but only for a while at a time.
func TestOvertaking(t *testing.T) {
	born := time.Unix(1000, 0)
	for _, tc := range []struct {
		age  time.Duration
		lag  time.Duration // of our clock
		want string
	}{
		{0, 0, "accept"},
		{overtakeTime - 1, 0, "accept"},
		{overtakeTime, 0, "wait"},
		{overtakeTime, time.Hour, "wait"},
		{overtakeTime + drainTime - 1, 0, "wait"},
		{overtakeTime + drainTime, 0, "accept"},
		{overtakeTime + drainTime, time.Hour, "accept"},
	} {
		large, small := aRequest("100-1", "a", "b"), aRequest("100-2", "a")
		large.Stat = recipe.Stat{Ctime: born}
		now := born.Add(tc.age - tc.lag)
		got := Assign(&Snapshot{
			Now: now, Lag: tc.lag, Pools: []*Pool{aPool()}, Nodes: []*zkmodel.Node{aNode("7", "in-use", "a")},
			Requests: []*zkmodel.Request{large, small},
		})
		if got := verdicts(got); got != "wait "+tc.want {
			t.Errorf("after %s: %s; want wait, %s", tc.age, got, tc.want)
		}
		if w, waits := got[0].(Wait); waits && (!w.Again.After(now) || w.Again.Sub(now) > drainTime) {
			t.Errorf("after %s: looks again at %s", tc.age, w.Again)
		}
	}
}

// Neither a young request that is more urgent nor one that is less lets others
// past an old one, in a pool and within a tenant's limit.
func TestOldOnesAreNotOvertakenBehindYoungOnes(t *testing.T) {
	for _, ids := range [][]string{{"300-1", "100-2"}, {"100-1", "200-2"}} {
		for _, what := range []string{"pool", "tenant"} {
			old, young, small := tenantRequest(ids[0], "red", 3), tenantRequest(ids[1], "red", 3), tenantRequest("300-3", "red", 1)
			s := tenantSnapshot(old, young, small)
			if what == "pool" {
				s.Pools[0].Limits[providers.Instances], s.Tenants = 3, nil
			}
			old.Stat.Ctime, young.Stat.Ctime, small.Stat.Ctime = s.Now.Add(-overtakeTime), s.Now, s.Now
			for i, d := range Assign(s) {
				if d.Verdict() != "wait" {
					t.Errorf("%s, decision %d: request %s: %s (%s)", what, i, d.Of().ID, d.Verdict(), d.Why())
				}
			}
		}
	}
}

// Catches a request that goes past a better one which room is kept from: who waits for
// the one that the pool drains for, or the tenant, is older, and others may pass an old one
// of that age. So may they where a large one of that age comes between both.
func TestNobodyPassesWhoIsHeldBack(t *testing.T) {
	passable := overtakeTime + drainTime
	for _, what := range []string{"pool", "tenant"} {
		for _, between := range []bool{false, true} {
			large, held := tenantRequest("100-1", "red", 3), tenantRequest("100-2", "red", 1)
			older, last := tenantRequest("100-3", "red", 3), tenantRequest("100-4", "red", 1)
			s := tenantSnapshot(large, held, last)
			if between {
				s.Requests = append(s.Requests, older)
			}
			if what == "pool" {
				s.Pools[0].Limits[providers.Instances], s.Tenants = 3, nil
			}
			large.Stat.Ctime, last.Stat.Ctime = s.Now.Add(-overtakeTime), s.Now
			held.Stat.Ctime, older.Stat.Ctime = s.Now.Add(-passable), s.Now.Add(-passable)
			for _, d := range Assign(s) {
				if d.Verdict() != "wait" {
					t.Errorf("%s, with one between %t: request %s: %s (%s)", what, between, d.Of().ID, d.Verdict(), d.Why())
				}
			}
		}
	}
}

// The zone of the first ready node is that of all others, ready or new.
func TestReadyNodesChooseTheZone(t *testing.T) {
	s := &Snapshot{
		Now:      time.Unix(1000, 0),
		Pools:    []*Pool{aPool(func(p *Pool) { p.Limits, p.Zones = nil, []string{"z1", "z2", "z3"} })},
		Nodes:    []*zkmodel.Node{aNode("7", "ready", "a"), aNode("8", "ready", "b"), aNode("9", "ready", "b")},
		Requests: []*zkmodel.Request{aRequest("100-1", "a", "b", "a"), aRequest("100-2", "b")},
	}
	s.Nodes[0].AZ, s.Nodes[1].AZ, s.Nodes[2].AZ = "z2", "z1", "z2"
	got := Assign(s)
	first, _ := got[0].(Accept)
	if show(got[0]) != "accept in cloud a=7 b=9 a=" || first.Zone != "z2" || show(got[1]) != "accept in cloud b=8" {
		t.Errorf("%s in %q, %s", show(got[0]), first.Zone, show(got[1]))
	}
}

// Idle nodes make room, the oldest first, no more than are needed and only where
// that helps.
func TestEvictions(t *testing.T) {
	idle := func(id string, at float64) *zkmodel.Node {
		n := aNode(id, "ready", "b")
		n.StateTime = zkmodel.Epoch(at)
		return n
	}
	for name, tc := range map[string]struct {
		nodes  []*zkmodel.Node
		labels []string
		who    string
		want   string
	}{
		"the oldest":         {[]*zkmodel.Node{idle("7", 20), idle("8", 10)}, []string{"a"}, "", "[8]"},
		"both":               {[]*zkmodel.Node{idle("7", 20), idle("8", 10)}, []string{"a", "a"}, "", "[8 7]"},
		"room is coming":     {[]*zkmodel.Node{idle("7", 20), aNode("8", "used", "a")}, []string{"a"}, "", "[]"},
		"would not help":     {[]*zkmodel.Node{idle("7", 20), aNode("8", "in-use", "a")}, []string{"a", "a"}, "", "[]"},
		"stock never evicts": {[]*zkmodel.Node{idle("7", 20), idle("8", 10)}, []string{"a"}, MinReadyRequestor, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := aRequest("100-1", tc.labels...)
			r.Requestor = tc.who
			d := Assign(&Snapshot{
				Now: time.Unix(1000, 0), Pools: []*Pool{aPool()}, Nodes: tc.nodes, Requests: []*zkmodel.Request{r},
			})[0]
			if w, waits := d.(Wait); !waits || fmt.Sprint(w.Evict) != tc.want {
				t.Errorf("%s, evicts %s, want %s", d.Verdict(), w.Evict, tc.want)
			}
		})
	}
}

// Where the provider is full, idle nodes of its other pools make room, after the
// pool's own; where the pool is full they would be of no use.
func TestEvictionsInOtherPools(t *testing.T) {
	for _, tc := range []struct {
		name        string
		cloud, pool int // limits of instances
		want        string
	}{
		{"the provider is full", 3, 10, "[7 8]"},
		{"the pool is full", 10, 1, "[]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cloud := providers.Resources{providers.Instances: tc.cloud}
			p := aPool(func(p *Pool) { p.Cloud, p.Limits[providers.Instances] = cloud, tc.pool })
			more := aPool(func(p *Pool) { p.ID, p.Name, p.Cloud, p.Limits = "launcher-cloud-more", "more", cloud, nil })
			more.Offers = map[string]Offer{"b": more.Offers["b"]}
			first, second, third := aNode("7", "ready", "b"), aNode("8", "ready", "b"), aNode("9", "ready", "b")
			second.Pool, third.Pool = "more", "more"
			s := &Snapshot{
				Now: time.Unix(1000, 0), Pools: []*Pool{p, more}, Nodes: []*zkmodel.Node{third, second, first},
				Requests: []*zkmodel.Request{aRequest("100-1", "a", "a")},
			}
			if tc.pool == 1 {
				s.Nodes, s.Requests[0].NodeTypes = s.Nodes[:2], []string{"a"}
				s.Nodes = append(s.Nodes, aNode("6", "in-use", "a"))
			}
			d := Assign(s)[0]
			if w, waits := d.(Wait); !waits || fmt.Sprint(w.Evict) != tc.want {
				t.Errorf("%s (%s), evicts %s, want %s", d.Verdict(), d.Why(), w.Evict, tc.want)
			}
		})
	}
}

// tenantRequest is a tenant's request for label a.
func tenantRequest(id, tenant string, count int) *zkmodel.Request {
	r := aRequest(id, slices.Repeat([]string{"a"}, count)...)
	r.TenantName = tenant
	return r
}

// tenantSnapshot is a pool in which tenant red, who has one node, may have three.
func tenantSnapshot(requests ...*zkmodel.Request) *Snapshot {
	used := aNode("7", "in-use", "a")
	used.TenantName = "red"
	return &Snapshot{
		Now: time.Unix(1000, 0), Nodes: []*zkmodel.Node{used}, Requests: requests,
		Pools:   []*Pool{aPool(func(p *Pool) { p.Limits[providers.Instances] = 10 })},
		Tenants: map[string]providers.Resources{"red": {providers.Instances: 3}},
	}
}

// A tenant at its limit waits, others go on; what it is given counts at once.
func TestTenantLimits(t *testing.T) {
	got := Assign(tenantSnapshot(
		tenantRequest("100-1", "red", 2), tenantRequest("100-2", "red", 1),
		tenantRequest("100-3", "blue", 1), tenantRequest("100-4", "blue", 1),
	))
	for i, want := range []string{"accept", "wait", "accept", "accept"} {
		if got[i].Verdict() != want {
			t.Errorf("%s: %s, want %s (%s)", got[i].Of().ID, got[i].Verdict(), want, got[i].Why())
		}
	}
}

// Small requests of a tenant go past a large one for a while, then it comes
// first; one that its limit never allows comes before nobody.
func TestTenantLimitsAreFair(t *testing.T) {
	for _, tc := range []struct {
		name  string
		large int
		age   time.Duration
		want  string
	}{
		{"young", 3, 0, "accept"},
		{"old", 3, overtakeTime, "wait"},
		{"old, and much too large", 4, overtakeTime, "accept"},
		{"older than the drain", 3, overtakeTime + drainTime, "accept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			large := tenantRequest("100-1", "red", tc.large)
			s := tenantSnapshot(large, tenantRequest("100-2", "red", 1))
			large.Stat.Ctime = s.Now.Add(-tc.age)
			got := Assign(s)
			if verdicts(got) != "wait "+tc.want {
				t.Errorf("%s (%s), then %s (%s), want wait and %s", got[0].Verdict(), got[0].Why(), got[1].Verdict(), got[1].Why(), tc.want)
			}
			if w, waits := got[0].(Wait); waits && tc.large == 3 && w.Again.IsZero() {
				t.Error("nobody looks again when the drain begins or ends")
			}
		})
	}
}

// A ready node counts for its new tenant, so the quota's lock is needed for it too.
func TestTenantLimitsCountReadyNodes(t *testing.T) {
	for tenant, want := range map[string]string{"red": "wait", "blue": "accept"} {
		s := tenantSnapshot(tenantRequest("100-1", tenant, 1))
		s.Nodes = append(s.Nodes, aNode("8", "ready", "a"))
		s.Pools[0].HoldsQuota = false
		got := Assign(s)[0]
		w, _ := got.(Wait)
		yes, _ := got.(Accept)
		if got.Verdict() != want || w.NeedsQuota != (want == "wait") || yes.UsesQuota {
			t.Errorf("%s: %+v", tenant, got)
		}
	}
}

// A tenant whose limit is reached gets no ready node either.
func TestTenantLimitsHoldForReadyNodes(t *testing.T) {
	s := tenantSnapshot(tenantRequest("100-1", "red", 2), tenantRequest("100-2", "red", 1))
	s.Nodes = append(s.Nodes, aNode("8", "ready", "a"), aNode("9", "ready", "a"), aNode("10", "ready", "a"))
	if got := Assign(s); show(got[0]) != "accept in cloud a=10 a=8" || got[1].Verdict() != "wait" {
		t.Errorf("%s, %s", show(got[0]), show(got[1]))
	}
}

// Machines that exist already do not count towards a tenant's limits.
func TestTenantsAreNotLimitedInStaticPools(t *testing.T) {
	static := aPool(func(p *Pool) { p.Static = true })
	taken := aNode("7", "in-use", "a")
	taken.TenantName, taken.Launcher = "t", StaticLauncher
	got := Assign(&Snapshot{
		Pools: []*Pool{static}, Nodes: []*zkmodel.Node{taken, aNode("8", "ready", "a")},
		Requests: []*zkmodel.Request{tenantRequest("100-1", "t", 1)},
		Tenants:  map[string]providers.Resources{"t": {providers.Instances: 1}},
	})
	if text := show(got[0]); text != "accept in cloud a=8" {
		t.Errorf("%s (%s)", text, got[0].Why())
	}
}
