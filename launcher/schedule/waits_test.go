package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rendezvous"
)

// at is a snapshot in which requests were born so long ago, in their order.
func at(pools []*Pool, nodes []*zkmodel.Node, requests []*zkmodel.Request, ages ...time.Duration) *Snapshot {
	s := &Snapshot{Now: time.Unix(100_000, 0), Pools: pools, Nodes: nodes, Requests: requests}
	for i, age := range ages {
		requests[i].Stat.Ctime = s.Now.Add(-age)
	}
	return s
}

// A round is asked for when the say of one that waits begins or ends, and for nothing else: each round reads all.
func TestWhoLooksAgain(t *testing.T) {
	inUse := []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), aNode("8", zkmodel.NodeInUse, "a")}
	frozen := aPool(func(p *Pool) { p.Frozen = map[string]string{"a": "line 3"} })
	s := at([]*Pool{frozen}, nil, []*zkmodel.Request{aRequest("100-1", "a")})
	if w := Assign(s)[0].(Wait); !w.Again.IsZero() || w.Cause != Configuration || w.Queued {
		t.Errorf("left out of the configuration: %+v", w)
	}
	full := at([]*Pool{aPool()}, inUse, []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "a")}, time.Second, 0)
	first, second := Assign(full)[0].(Wait), Assign(full)[1].(Wait)
	if !first.Again.Equal(full.Now.Add(overtakeTime-time.Second)) || !second.Again.IsZero() || !first.Queued {
		t.Errorf("of two the older has the say: %s, %s", first.Again, second.Again)
	}
	// Also of one that has the say at its provider only: in its pool another has it, for whom a third is held back.
	cloud := providers.Resources{providers.Instances: 2}
	pools := []*Pool{
		aPool(func(p *Pool) {
			p.Cloud, p.Limits = cloud, providers.Resources{providers.Instances: 2, providers.RAM: 2048}
		}),
	}
	pools[0].Offers["big"] = Offer{Ready: true, Needs: providers.Resources{providers.RAM: 2000}}
	line := at(pools, inUse, []*zkmodel.Request{aRequest("100-1", "big"), aRequest("100-2", "big"), aRequest("100-3", "a")},
		overtakeTime, 0, overtakeTime+2*time.Second)
	for i, d := range Assign(line) {
		if d.Verdict() != "wait" {
			t.Errorf("%d: %s (%s)", i, d.Verdict(), d.Why())
		}
	}
}

// A quota is locked for those that it can help: neither for one that waits in a full pool without an idle
// node, nor by deleting nodes that another launcher counts.
func TestQuotaIsLockedForRoom(t *testing.T) {
	of := func(nodes ...*zkmodel.Node) Wait {
		s := at([]*Pool{aPool(func(p *Pool) { p.HoldsQuota = false })}, nodes, []*zkmodel.Request{aRequest("100-1", "a")})
		return Assign(s)[0].(Wait)
	}
	if w := of(aNode("7", zkmodel.NodeInUse, "b"), aNode("8", zkmodel.NodeInUse, "b")); w.NeedsQuota || w.Evict != nil {
		t.Errorf("nothing is idle: %+v", w)
	}
	if w := of(aNode("7", zkmodel.NodeInUse, "b"), aNode("8", zkmodel.NodeReady, "b")); !w.NeedsQuota || w.Evict != nil {
		t.Errorf("an idle node could go: %+v", w)
	}
}

// Nodes that make room are counted once: another request that waits finds that room is coming.
func TestRoomIsMadeOnce(t *testing.T) {
	pools := []*Pool{aPool(func(p *Pool) { p.Limits, p.Cloud = nil, providers.Resources{providers.RAM: 3072} })}
	pools[0].Offers["twice"] = Offer{Ready: true, Needs: providers.Resources{providers.RAM: 2048}}
	large, small := anon("cloud", "main", "twice"), aNode("9", zkmodel.NodeReady, "b")
	large.State, large.ID = zkmodel.NodeReady, "7"
	// Both are new, so that the first one does not keep the second one out.
	s := at(pools, []*zkmodel.Node{large, small}, []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "a")}, time.Second, 0)
	for i, want := range []string{"[7]", "[]"} {
		if w := Assign(s)[i].(Wait); fmt.Sprint(w.Evict) != want {
			t.Errorf("request %d evicts %s, want %s (%s)", i, w.Evict, want, w.Why())
		}
	}
	// One that is being deleted makes room, too.
	s.Requests, s.Evicted = s.Requests[:1], map[string]bool{"9": true}
	if w := Assign(s)[0].(Wait); w.Evict != nil {
		t.Errorf("evicts %s, although 9 is on its way out", w.Evict)
	}
}

// Idle nodes of records that do not say what they take make the room of their own pool's label.
func TestEvictionsCountByPool(t *testing.T) {
	cloud := providers.Resources{providers.RAM: 4096}
	offers := func(ram int) map[string]Offer {
		return map[string]Offer{"a": {Ready: true, Needs: providers.Resources{providers.RAM: ram}}}
	}
	p := aPool(func(p *Pool) { p.Limits, p.Cloud, p.Offers = nil, cloud, offers(3072) })
	more := aPool(func(p *Pool) { p.ID, p.Name, p.Limits, p.Cloud, p.Offers = "more", "more", nil, cloud, offers(1024) })
	more.Offers["b"] = more.Offers["a"]
	var nodes []*zkmodel.Node
	for i := range 4 {
		n := anon("cloud", "more", "b")
		n.ID, n.State = fmt.Sprint(i), zkmodel.NodeReady
		nodes = append(nodes, n)
	}
	far := aPool(func(p *Pool) {
		p.ID, p.Provider, p.Limits, p.Cloud, p.Offers, p.Disabled = "far", "far", nil, nil, offers(9), true
	})
	idle := anon("far", "main", "b")
	idle.ID, idle.State = "far", zkmodel.NodeReady
	s := at([]*Pool{far, p, more}, append(nodes, idle), []*zkmodel.Request{aRequest("100-1", "a")})
	s.Requests[0].Provider = "cloud"
	s.Requests[0].Reuse = false
	more.Priority = 200 // p is asked first
	if w, waits := Assign(s)[0].(Wait); !waits || w.Pool != p || fmt.Sprint(w.Evict) != "[0 1 2]" {
		t.Errorf("%+v", w)
	}
}

// A pool that does not heed its provider's limits is not drained for requests that wait for these.
func TestOnlyPoolsOfTheLimitDrain(t *testing.T) {
	pools := []*Pool{
		aPool(func(p *Pool) { p.Limits, p.Cloud = nil, providers.Resources{providers.Instances: 1} }),
		aPool(func(p *Pool) { p.ID, p.Name, p.Limits, p.Cloud = "free", "free", nil, nil }),
	}
	delete(pools[0].Offers, "b")
	delete(pools[1].Offers, "a")
	s := at(pools, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "b")}, overtakeTime, 0)
	if got := verdicts(Assign(s)); got != "wait accept" {
		t.Errorf("%s, although the second pool has no limit", got)
	}
	pools[1].Learned.Lesson.Failures = 1 // the cloud itself has refused
	if got := verdicts(Assign(s)); got != "wait wait" {
		t.Errorf("%s, although the cloud is full", got)
	}
}

// Where the pool alone is full, the provider's other pools go on.
func TestOtherPoolsGoOnBesideAFullOne(t *testing.T) {
	cloud := providers.Resources{providers.Instances: 10}
	pools := []*Pool{
		aPool(func(p *Pool) { p.Cloud = cloud }),
		aPool(func(p *Pool) { p.ID, p.Name, p.Limits, p.Cloud = "more", "more", nil, cloud }),
	}
	delete(pools[0].Offers, "b")
	delete(pools[1].Offers, "a")
	full := []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), aNode("8", zkmodel.NodeInUse, "a")}
	s := at(pools, full, []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "b")}, overtakeTime, 0)
	if got := verdicts(Assign(s)); got != "wait accept" {
		t.Errorf("%s", got)
	}
}

// Those that a pool may never serve, as far as its cloud has taught, come first for nobody.
func TestWhatMayNeverBeHeldBarsNobody(t *testing.T) {
	s := &Snapshot{Now: time.Unix(100_000, 0), Pools: skyOf(250), Requests: append([]*zkmodel.Request{aRequest("100-0", "a", "a", "a", "a", "a")}, manyRequests(1)...)}
	s.Requests[0].Stat.Ctime, s.Requests[1].Stat.Ctime = s.Now.Add(-overtakeTime), s.Now
	s.Pools[0].Learned = refusing(3)
	s.Uses = map[string]*lesson.Use{"cloud-0": {Held: providers.Resources{providers.Instances: 2, providers.RAM: 2048}, Flying: providers.Resources{}}}
	if got := verdicts(Assign(s)); got != "wait accept" {
		t.Errorf("%s", got)
	}
}

// Where a cloud has refused, idle nodes make the room that it is known to have, and stock waits without a say.
func TestRoomInACloudThatRefused(t *testing.T) {
	idle := aNode("7", zkmodel.NodeReady, "b")
	idle.Provider = "cloud-0"
	s := &Snapshot{
		Now: time.Unix(100_000, 0), Pools: skyOf(250), Nodes: []*zkmodel.Node{idle}, Requests: manyRequests(1),
		Uses: map[string]*lesson.Use{"cloud-0": {Held: providers.Resources{providers.Instances: 1, providers.RAM: 1024}, Flying: providers.Resources{}}},
	}
	s.Pools[0].Learned = refusing(1)
	s.Requests[0].Stat.Ctime = s.Now
	w := Assign(s)[0].(Wait)
	if fmt.Sprint(w.Evict) != "[7]" || !w.Queued || w.Cause != Refused || w.Again.IsZero() {
		t.Errorf("%+v", w)
	}
	s.Requests[0].Requestor = MinReadyRequestor
	if w := Assign(s)[0].(Wait); w.Evict != nil || w.Queued || !w.Again.IsZero() {
		t.Errorf("stock: %+v", w)
	}
	s.Requests[0] = aRequest("100-0", "a", "a", "a")
	if w := Assign(s)[0].(Wait); w.Evict != nil || !w.Queued {
		t.Errorf("more than it ever held: %+v", w)
	}
	// Launches under way are waited for without a place in the line.
	s.Pools[0].Learned = lesson.View{}
	s.Requests = manyRequests(1)
	s.Uses["cloud-0"] = &lesson.Use{Held: providers.Resources{}, Flying: providers.Resources{providers.Instances: 5}, Launches: lesson.AtOnce}
	if w := Assign(s)[0].(Wait); w.Queued || w.Evict != nil || w.Cause != Refused || len(w.Short) != 0 {
		t.Errorf("launches are under way: %+v", w)
	}
}

// What is accepted is under way for those that come after.
func TestAcceptedLaunchesAreUnderWay(t *testing.T) {
	s := &Snapshot{Now: time.Unix(100_000, 0), Pools: skyOf(250), Requests: manyRequests(4)}
	s.Pools[0].Learned = refusing(3)
	s.Uses = map[string]*lesson.Use{"cloud-0": {Held: providers.Resources{}, Flying: providers.Resources{}}}
	if got := verdicts(Assign(s)); got != "accept accept accept wait" {
		t.Errorf("%s of a cloud that holds three", got)
	}
}

// A larger request is not tried while one for a single node waits that can be: that tells as much.
func TestSmallRequestsAreTriedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Snapshot, *zkmodel.Request)
		want   bool // it is tried
	}{
		"one waits":              {func(*Snapshot, *zkmodel.Request) {}, false},
		"its record is broken":   {func(_ *Snapshot, r *zkmodel.Request) { r.Broken = errUnreadable }, true},
		"it is served already":   {func(_ *Snapshot, r *zkmodel.Request) { r.State = zkmodel.RequestPending }, true},
		"it is left alone":       {func(s *Snapshot, r *zkmodel.Request) { s.Busy = map[string]bool{r.ID: true} }, true},
		"it is for another pool": {func(_ *Snapshot, r *zkmodel.Request) { r.NodeTypes = zkmodel.Strings{"z"} }, true},
		"it is no smaller":       {func(_ *Snapshot, r *zkmodel.Request) { r.NodeTypes = zkmodel.Strings{"a", "a"} }, true},
	} {
		large, small := aRequest("100-1", "a", "a"), aRequest("100-2", "a")
		s := &Snapshot{Now: time.Unix(100_000, 0), Pools: skyOf(250), Requests: []*zkmodel.Request{large, small}}
		s.Pools[0].Learned = refusing(2)
		s.Pools[0].Learned.Due = true
		s.Uses = map[string]*lesson.Use{"cloud-0": {Held: providers.Resources{providers.Instances: 2, providers.RAM: 2048}, Flying: providers.Resources{}}}
		for _, id := range []string{"7", "8"} {
			n := aNode(id, zkmodel.NodeReady, "b")
			n.Provider = "cloud-0"
			s.Nodes = append(s.Nodes, n)
		}
		c.change(s, small)
		d := Assign(s)[0]
		if _, tried := d.(Accept); tried != c.want {
			t.Errorf("%s: %s (%s)", name, d.Verdict(), d.Why())
		}
		if w, waits := d.(Wait); waits && w.Evict != nil {
			t.Errorf("%s: %s go for what is not tried yet", name, w.Evict)
		}
	}
	places := []Place{{Label: "a", Node: "7"}, {Label: "b", Needs: providers.Resources{providers.Instances: 1}}}
	if machines := newMachines(places); len(machines) != 1 || machines[0] == nil {
		t.Errorf("%v are launched for %v", machines, places)
	}
}

// A pool that is paused by another's operator is left requests only where no other pool can take them.
func TestPausedPoolsAreLeftNothing(t *testing.T) {
	ours, their := candidate{id: "x", ours: true}, candidate{id: "y"}
	owners := func(mine, its bool) map[string]bool {
		got := map[string]bool{}
		for i := range 40 {
			ours.paused, their.paused = mine, its
			got[preferredPool([]candidate{ours, their}, aRequest(fmt.Sprintf("200-%010d", i), "a"))] = true
		}
		return got
	}
	for _, c := range []struct {
		mine, its, both bool
		only            string
	}{
		{false, false, true, ""},
		{true, true, true, ""},
		{false, true, false, ""},
		{true, false, false, "y"},
	} {
		got := owners(c.mine, c.its)
		if c.both && len(got) != 2 || !c.both && (len(got) != 1 || !got[c.only]) {
			t.Errorf("ours paused %t, the other %t: %v take requests", c.mine, c.its, got)
		}
	}
}

// The providers that are short of room are told once each, and only these: elsewhere stock is kept back for them.
func TestShortProviders(t *testing.T) {
	in := func(name string) said { return said{pool: &Pool{Provider: name}} }
	got := shortProviders([]later{
		{said: in("shared"), shared: true}, {said: in("busy")}, {said: in("refused"), full: true}, {said: in("shared"), shared: true}, {said: in("tenant"), tenant: true},
	})
	if !slices.Equal(got, []string{"shared", "refused"}) {
		t.Errorf("%v", got)
	}
}

// Room for launches is used up by launches: a ready node takes none, and many nodes of one request do not make it endless.
func TestMaxConcurrencyCountsLaunches(t *testing.T) {
	ready := []*zkmodel.Node{aNode("7", zkmodel.NodeReady, "a")}
	for name, c := range map[string]struct {
		nodes []*zkmodel.Node
		asked [][]string
		want  string
	}{
		"a ready node":       {ready, [][]string{{"a"}, {"b"}}, "accept accept"},
		"more than one each": {nil, [][]string{{"a", "a"}, {"a"}}, "accept wait"},
	} {
		s := at([]*Pool{aPool(func(p *Pool) { p.Limits, p.Room = nil, 1 })}, c.nodes, nil)
		for i, labels := range c.asked {
			s.Requests = append(s.Requests, aRequest(fmt.Sprintf("100-%d", i), labels...))
		}
		if got := verdicts(Assign(s)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What nobody's tenant asks for has no tenant's limit, and a tenant's requests for machines that exist already wait for no other of it.
func TestLimitsAreOfTheirTenant(t *testing.T) {
	s := tenantSnapshot(aRequest("100-1", "a"), aRequest("100-2", "a"))
	s.Tenants[""] = providers.Resources{providers.Instances: 1}
	if got := verdicts(Assign(s)); got != "accept accept" {
		t.Errorf("%s of those without a tenant", got)
	}
	s = tenantSnapshot(tenantRequest("100-1", "red", 3), tenantRequest("100-2", "red", 1))
	s.Pools = append(s.Pools, aPool(func(p *Pool) { p.ID, p.Provider, p.Static = "static", "static", true }))
	for _, p := range s.Pools {
		p.Offers = map[string]Offer{p.Provider: p.Offers["a"]}
	}
	s.Requests[0].NodeTypes, s.Requests[1].NodeTypes = zkmodel.Strings{"cloud", "cloud", "cloud"}, zkmodel.Strings{"static", "static", "static", "static"}
	s.Requests[0].Stat.Ctime = s.Now.Add(-overtakeTime) // red drains for it
	for i := range 4 {
		n := aNode(fmt.Sprint(i), zkmodel.NodeReady, "static")
		n.Provider, n.Launcher = "static", StaticLauncher
		s.Nodes = append(s.Nodes, n)
	}
	if got := verdicts(Assign(s)); got != "wait accept" {
		t.Errorf("%s", got)
	}
}

// A machine that exists already is waited for without a place in the line: nothing can make room for it.
func TestStaticPoolsWaitForTheirMachines(t *testing.T) {
	s := at([]*Pool{aPool(func(p *Pool) { p.Static = true })}, []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a")}, []*zkmodel.Request{aRequest("100-1", "a")})
	if w, waits := Assign(s)[0].(Wait); !waits || w.Queued || w.Cause != Quota || !strings.Contains(w.Why(), "is free") {
		t.Errorf("%s (%s)", verdicts(Assign(s)), Assign(s)[0].Why())
	}
}

// A provider that an operator has paused takes nothing, also not with a node that is ready.
func TestPausedProviderWaits(t *testing.T) {
	s := at([]*Pool{aPool(func(p *Pool) { p.Paused = "paused by me" })}, []*zkmodel.Node{aNode("7", zkmodel.NodeReady, "a")}, []*zkmodel.Request{aRequest("100-1", "a")})
	if w, waits := Assign(s)[0].(Wait); !waits || w.Cause != Held || w.Why() != "paused by me" {
		t.Errorf("%s (%s)", verdicts(Assign(s)), Assign(s)[0].Why())
	}
}

// New nodes are spread over the zones by the request's id, for each launcher alike; where one that is reused has a
// zone, all follow it, also behind one that has none.
func TestZones(t *testing.T) {
	p := aPool(func(p *Pool) { p.Limits, p.Cloud, p.Zones = nil, nil, []string{"z1", "z2", "z3"} })
	drawn := map[string]int{}
	for i := range 60 {
		r := aRequest(fmt.Sprintf("200-%010d", i), "a")
		zone := Assign(&Snapshot{Pools: []*Pool{p}, Requests: []*zkmodel.Request{r}})[0].(Accept).Zone
		if again := Assign(&Snapshot{Pools: []*Pool{p}, Requests: []*zkmodel.Request{r}})[0].(Accept).Zone; again != zone {
			t.Errorf("%s, then %s", zone, again)
		}
		drawn[zone]++
	}
	if len(drawn) != 3 || drawn["z1"] < 5 || drawn["z2"] < 5 || drawn["z3"] < 5 {
		t.Errorf("60 requests are in %v", drawn)
	}
	s := &Snapshot{
		Pools: []*Pool{p}, Requests: []*zkmodel.Request{aRequest("100-1", "a", "b", "a")},
		Nodes: []*zkmodel.Node{aNode("7", zkmodel.NodeReady, "a"), aNode("8", zkmodel.NodeReady, "b"), aNode("9", zkmodel.NodeReady, "a")},
	}
	s.Nodes[0].AZ, s.Nodes[2].AZ = "z2", "z1"
	if got := Assign(s)[0].(Accept); show(got) != "accept in cloud a=7 b=8 a=" || got.Zone != "z2" {
		t.Errorf("%s in %s", show(got), got.Zone)
	}
}

// Of pools that are equally used, the one that the request's id draws is the one for every launcher, of every release.
func TestDrawIsByRendezvous(t *testing.T) {
	for i := range 20 {
		r := aRequest(fmt.Sprintf("200-%010d", i), "a")
		want := rendezvous.Owner([]string{"cloud-0/main", "cloud-1/main"}, r.ID)
		for _, pools := range [][]*Pool{{skyOf(9, 9)[0], skyOf(9, 9)[1]}, {skyOf(9, 9)[1], skyOf(9, 9)[0]}} {
			got := Assign(&Snapshot{Pools: pools, Requests: []*zkmodel.Request{r}})[0].(Accept)
			if got.Pool.Provider+"/main" != want {
				t.Errorf("%s draws %s, want %s", r.ID, got.Pool.Provider, want)
			}
		}
	}
}

// How full a pool is follows from its own limit, else from its cloud's; one without any is never full.
func TestSharesOfPools(t *testing.T) {
	s := &Snapshot{Pools: skyOf(10, 10, 10), Requests: manyRequests(30)}
	s.Pools[1].Limits, s.Pools[1].Cloud = nil, providers.Resources{providers.Instances: 20}
	s.Pools[2].Limits = nil
	s.Pools[2].Room = 15
	s.Order = configs.OrderSpread
	if taken := accepted(s); taken["cloud-2"] != 15 || taken["cloud-0"] != 5 || taken["cloud-1"] != 10 {
		t.Errorf("%v", taken)
	}
}

// Deciding changes nothing of what it looks at.
func TestAssignLeavesTheOrder(t *testing.T) {
	s := at([]*Pool{aPool()}, nil, []*zkmodel.Request{aRequest("300-1", "a"), aRequest("100-1", "a")})
	Assign(s)
	if s.Requests[0].ID != "300-1" {
		t.Error("the snapshot's requests are sorted")
	}
}
