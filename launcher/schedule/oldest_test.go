package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Figures of what requests wait for: the oldest of each cause, and nothing that nobody waits for.
func TestOldest(t *testing.T) {
	now := time.Unix(1000, 0)
	born := func(id string, age time.Duration) *zkmodel.Request {
		r := aRequest(id, "a")
		r.Stat.Ctime = now.Add(-age)
		return r
	}
	first, second, third, left := born("1", time.Minute), born("2", time.Hour), born("3", time.Second), born("4", time.Minute)
	fresh, taken := born("5", 2*time.Second), born("6", time.Minute)
	pending, broken, stock := born("7", 9*time.Hour), born("8", 9*time.Hour), born("9", 9*time.Hour)
	pending.State, broken.Broken, stock.Requestor = zkmodel.RequestPending, errUnreadable, MinReadyRequestor
	last := []Decision{
		Wait{About: About{Request: first}, Cause: Quota},
		Wait{About: About{Request: second}, Cause: Quota},
		Wait{About: About{Request: third}, Cause: Quota},
		Yield{About: About{Request: left}},
		Accept{About: About{Request: taken}},
	}
	got := Oldest([]*zkmodel.Request{first, second, third, left, fresh, taken, pending, broken, stock}, last, nil)
	want := map[Cause]time.Time{Quota: second.Stat.Ctime, Others: left.Stat.Ctime, Undecided: taken.Stat.Ctime}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A launcher that is paused takes nothing and declines nothing, and says why.
func TestPaused(t *testing.T) {
	all := []Decision{Accept{About: About{Request: aRequest("1", "a")}}, Decline{About: About{Request: aRequest("2", "a")}}}
	if got := Paused(all, ""); verdicts(got) != "accept decline" {
		t.Errorf("nobody has paused it: %s", verdicts(got))
	}
	for i, d := range Paused(all, "repairs") {
		w, waits := d.(Wait)
		if !waits || w.Cause != Held || w.Request != all[i].Of() || w.Why() != "this launcher is paused: repairs" {
			t.Errorf("%+v", d)
		}
	}
}

// unanswered is a node of a request that a provider was asked for.
func unanswered(id, request, provider string, change ...func(*zkmodel.Node)) *zkmodel.Node {
	n := aNode(id, zkmodel.NodeBuilding, "a")
	n.AllocatedTo, n.Provider, n.Asked = request, provider, zkmodel.EpochOf(time.Unix(900, 0))
	for _, c := range change {
		c(n)
	}
	return n
}

// A provider that may yet make a machine for a request is asked for no other, and nothing is left to it.
func TestOwedMachines(t *testing.T) {
	far := other("x", "far", 100, "a")
	breaks := func(n *zkmodel.Node) { n.Broken = errUnreadable }
	answered := func(n *zkmodel.Node) { n.ExternalID = zkmodel.TextValue("id") }
	for name, c := range map[string]struct {
		nodes []*zkmodel.Node
		want  string
	}{
		"nothing is owed":         {nil, "accept"},
		"by the only one":         {[]*zkmodel.Node{unanswered("7", "100-1", "cloud")}, "wait"},
		"to another request":      {[]*zkmodel.Node{unanswered("7", "100-2", "cloud")}, "accept"},
		"to nobody":               {[]*zkmodel.Node{unanswered("7", "", "cloud")}, "accept"},
		"it has answered":         {[]*zkmodel.Node{unanswered("7", "100-1", "cloud", answered)}, "accept"},
		"the record is broken":    {[]*zkmodel.Node{unanswered("7", "100-1", "cloud", breaks)}, "accept"},
		"by two, one after other": {[]*zkmodel.Node{unanswered("7", "100-1", "cloud"), unanswered("8", "100-1", "far"), unanswered("9", "100-3", "cloud")}, "wait"},
	} {
		s := &Snapshot{Now: time.Unix(1000, 0), Pools: []*Pool{aPool(func(p *Pool) { p.Limits = nil })}, Nodes: c.nodes, Requests: []*zkmodel.Request{aRequest("100-1", "a")}}
		d := Assign(s)[0]
		if d.Verdict() != c.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Verdict(), d.Why(), c.want)
		}
		if w, waits := d.(Wait); waits && (w.Cause != Provider || w.Why() != "provider cloud may still make node 7, whose creation it did not answer") {
			t.Errorf("%s: %s", name, d.Why())
		}
	}
	// The pool of another launcher would be preferred, but for what its provider owes.
	far.Priority = 1
	s := &Snapshot{Now: time.Unix(1000, 0), Pools: []*Pool{aPool()}, Registered: []*zkmodel.Component{far}, Requests: []*zkmodel.Request{aRequest("100-1", "a")}}
	if d := Assign(s)[0]; d.Verdict() != "yield" {
		t.Errorf("%s (%s), want it left to the better pool", d.Verdict(), d.Why())
	}
	s.Nodes = []*zkmodel.Node{unanswered("8", "100-1", "far")}
	if d := Assign(s)[0]; d.Verdict() != "accept" {
		t.Errorf("%s (%s), although the better pool owes a machine", d.Verdict(), d.Why())
	}
}

// A request leaves a provider that does not answer for one that takes it, and for none that does not answer either.
func TestElsewhere(t *testing.T) {
	silent := func(n *zkmodel.Node) { n.Reason = "no answer" }
	waits := unanswered("7", "100-1", "cloud", silent)
	second := func(change ...func(*Pool)) *Pool {
		return aPool(append([]func(*Pool){func(p *Pool) { p.ID, p.Provider = "launcher-second-main", "second" }}, change...)...)
	}
	elsewhere := other("x", "far", 100, "a")
	paused := true
	held := other("x", "far", 100, "a")
	held.Paused = &paused
	for name, c := range map[string]struct {
		pools      []*Pool
		registered []*zkmodel.Component
		nodes      []*zkmodel.Node
		declined   string
		want       bool
	}{
		"there is no other":                {},
		"ours has room":                    {pools: []*Pool{second()}, want: true},
		"ours comes first in the list":     {pools: []*Pool{second(), second(func(p *Pool) { p.ID, p.Disabled = "y", true })}, want: true},
		"ours is full":                     {pools: []*Pool{second(func(p *Pool) { p.Limits = providers.Resources{providers.Instances: 0} })}},
		"ours waits":                       {pools: []*Pool{second(func(p *Pool) { p.Room = 0 })}},
		"ours does not answer either":      {pools: []*Pool{second(func(p *Pool) { p.Mute = true })}},
		"a machine is searched for there":  {pools: []*Pool{second()}, nodes: []*zkmodel.Node{unanswered("8", "100-2", "second", silent)}},
		"one was asked for there just now": {pools: []*Pool{second()}, nodes: []*zkmodel.Node{unanswered("8", "100-2", "second")}, want: true},
		"it has answered": {pools: []*Pool{second()}, want: true, nodes: []*zkmodel.Node{unanswered("8", "100-2", "second", silent, func(n *zkmodel.Node) {
			n.ExternalID = zkmodel.TextValue("id")
		})}},
		"a broken record tells nothing": {pools: []*Pool{second()}, want: true, nodes: []*zkmodel.Node{unanswered("8", "100-2", "second", silent, func(n *zkmodel.Node) {
			n.Broken = errUnreadable
		})}},
		"ours has declined it":          {pools: []*Pool{second()}, declined: "launcher-second-main"},
		"another launcher has one":      {registered: []*zkmodel.Component{elsewhere}, want: true},
		"it has declined":               {registered: []*zkmodel.Component{elsewhere}, declined: "x"},
		"it is paused":                  {registered: []*zkmodel.Component{held}},
		"it does not answer":            {registered: []*zkmodel.Component{elsewhere}, nodes: []*zkmodel.Node{unanswered("8", "100-2", "far", silent)}},
		"another has a pool in ours":    {pools: []*Pool{second(func(p *Pool) { p.Room = 0 })}, registered: []*zkmodel.Component{other("x", "second", 100, "a")}},
		"another has one in the silent": {registered: []*zkmodel.Component{other("x", "cloud", 100, "a")}},
	} {
		r := aRequest("100-1", "a")
		if c.declined != "" {
			r.DeclinedBy = zkmodel.Strings{c.declined}
		}
		s := &Snapshot{
			Now: time.Unix(1000, 0), Pools: append([]*Pool{aPool(func(p *Pool) { p.Limits = nil })}, c.pools...), Registered: c.registered,
			Nodes: append([]*zkmodel.Node{waits}, c.nodes...), Requests: []*zkmodel.Request{r},
		}
		if got := Elsewhere(s, r); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
