package launcher

import (
	"fmt"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Requests are spread over the launchers; each is taken by one first, and by the
// others after the grace.
func TestFirstTaker(t *testing.T) {
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
			if d.Verdict == Accept {
				takers[own]++
				continue
			}
			if d.Verdict != Leave || !d.Deferred || !d.Again.Equal(now.Add(time.Second)) {
				t.Fatalf("%+v", d)
			}
			snap.Since = map[string]time.Time{r.ID: now.Add(-time.Second)}
			if d := Assign(snap)[0]; d.Verdict != Accept {
				t.Fatalf("after the grace: %+v", d)
			}
			snap.Since, snap.Registered = nil, nil // the others have died
			if d := Assign(snap)[0]; d.Verdict != Accept {
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
func TestUncountedQuota(t *testing.T) {
	snap := &Snapshot{
		Now: time.Unix(1000, 0), Pools: []*Pool{aPool(func(p *Pool) { p.Counted = false })},
		Nodes:    []*zkmodel.Node{aNode("7", "ready", "b")},
		Requests: []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "b")},
	}
	got := Assign(snap)
	if got[0].Verdict != Wait || !got[0].Uncounted {
		t.Errorf("new node: %+v", got[0])
	}
	if got[1].Verdict != Accept {
		t.Errorf("ready node: %+v", got[1])
	}
}

// A smaller request may go past one that waits, but only for a while at a time.
func TestOvertaking(t *testing.T) {
	born := time.Unix(1000, 0)
	for _, tc := range []struct {
		age  time.Duration
		want Verdict
	}{
		{0, Accept},
		{overtakeTime - 1, Accept},
		{overtakeTime, Wait},
		{overtakeTime + drainTime - 1, Wait},
		{overtakeTime + drainTime, Accept},
	} {
		large, small := aRequest("100-1", "a", "b"), aRequest("100-2", "a")
		large.Stat = recipe.Stat{Ctime: born}
		got := Assign(&Snapshot{
			Now: born.Add(tc.age), Pools: []*Pool{aPool()}, Nodes: []*zkmodel.Node{aNode("7", "in-use", "a")},
			Requests: []*zkmodel.Request{large, small},
		})
		if got[0].Verdict != Wait || got[1].Verdict != tc.want {
			t.Errorf("after %s: %s, %s; want wait, %s", tc.age, got[0].Verdict, got[1].Verdict, tc.want)
		}
		if !got[0].Again.After(born.Add(tc.age)) {
			t.Errorf("after %s: looks again at %s", tc.age, got[0].Again)
		}
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
		"stock never evicts": {[]*zkmodel.Node{idle("7", 20), idle("8", 10)}, []string{"a"}, minReadyRequestor, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := aRequest("100-1", tc.labels...)
			r.Requestor = tc.who
			d := Assign(&Snapshot{
				Now: time.Unix(1000, 0), Pools: []*Pool{aPool()}, Nodes: tc.nodes, Requests: []*zkmodel.Request{r},
			})[0]
			if got := fmt.Sprint(d.Evict); d.Verdict != Wait || got != tc.want {
				t.Errorf("%s, evicts %s, want %s", d.Verdict, got, tc.want)
			}
		})
	}
}

// A tenant at its limit waits, others go on; what it is given counts at once.
func TestTenantLimits(t *testing.T) {
	of := func(id, tenant string) *zkmodel.Request {
		r := aRequest(id, "a")
		r.TenantName = tenant
		return r
	}
	used := aNode("7", "in-use", "a")
	used.TenantName = "red"
	got := Assign(&Snapshot{
		Now: time.Unix(1000, 0), Nodes: []*zkmodel.Node{used},
		Pools:    []*Pool{aPool(func(p *Pool) { p.Limits[providers.Instances] = 10 })},
		Tenants:  map[string]providers.Resources{"red": {providers.Instances: 2}},
		Requests: []*zkmodel.Request{of("100-1", "red"), of("100-2", "red"), of("100-3", "blue"), of("100-4", "blue")},
	})
	for i, want := range []Verdict{Accept, Wait, Accept, Accept} {
		if got[i].Verdict != want {
			t.Errorf("%s: %s, want %s (%s)", got[i].Request.ID, got[i].Verdict, want, got[i].Reason)
		}
	}
}
