package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// The reason of a request that is left to others says to whom; one that every pool here has declined says so.
func TestWhyARequestIsLeft(t *testing.T) {
	idle := aPool(func(p *Pool) { p.Idle = true })
	s := at([]*Pool{idle}, nil, []*zkmodel.Request{aRequest("100-1", "a")})
	if d := Assign(s)[0]; d.Verdict() != "yield" || !strings.Contains(d.Why(), "max-concurrency 0") {
		t.Errorf("%s (%s)", d.Verdict(), d.Why())
	}
	s.Requests[0].DeclinedBy = zkmodel.Strings{idle.ID}
	if d := Assign(s)[0]; d.Verdict() != "yield" || d.Why() != "every pool of this launcher has declined it" {
		t.Errorf("%s (%s)", d.Verdict(), d.Why())
	}
}

// A pool that cannot launch at the moment, or whose label is left out by a mistake, is no candidate, but keeps others from
// saying that nobody has the label.
func TestTroubledPools(t *testing.T) {
	for name, p := range map[string]*Pool{
		"broken":   aPool(func(p *Pool) { p.Broken = true }),
		"frozen":   aPool(func(p *Pool) { p.Frozen = map[string]string{"a": "line 3"} }),
		"declined": aPool(func(p *Pool) { p.ID = "x" }),
		"lacks it": aPool(func(p *Pool) { delete(p.Offers, "a") }),
	} {
		r := aRequest("100-1", "a")
		r.DeclinedBy = zkmodel.Strings{"x"}
		if got := newAssignment(&Snapshot{Pools: []*Pool{p}}).candidates(r); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	troubled := other("x", "far", 100)
	troubled.TroubledLabels, troubled.Trouble = zkmodel.Strings{"z"}, "far cannot be reached"
	s := at([]*Pool{aPool()}, nil, []*zkmodel.Request{aRequest("100-1", "z")})
	s.Registered = []*zkmodel.Component{troubled}
	if d := Assign(s)[0]; d.Verdict() != "yield" || d.Why() != troubled.Trouble {
		t.Errorf("%s (%s)", d.Verdict(), d.Why())
	}
}

// What others said of a request is repeated only by a pool that lacks its label, and only if they have declined it.
func TestReasonsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		label    string
		declined []string
		want     string
	}{
		"it has the label":     {"a", []string{"x"}, "accept: pool main of cloud has room"},
		"they have not":        {"z", nil, "decline: no pool has the label z"},
		"it lacks it, as said": {"z", []string{"x"}, "decline: too large"},
		"it cannot be made":    {"faulty", nil, "decline: pool main of cloud cannot make label faulty: no such flavor"},
	} {
		p := aPool()
		p.Offers["faulty"] = Offer{Ready: true, Needs: p.Offers["a"].Needs, Fault: "no such flavor"}
		s := at([]*Pool{p}, nil, []*zkmodel.Request{aRequest("100-1", c.label)})
		s.Requests[0].DeclinedBy, s.Requests[0].Reason = c.declined, "too large"
		if d := Assign(s)[0]; d.Verdict()+": "+d.Why() != c.want {
			t.Errorf("%s: %s: %s, want %s", name, d.Verdict(), d.Why(), c.want)
		}
	}
}

// A record that cannot be read, or one without a name, is no pool that has still to answer.
func TestDeclinedByAllThatCanAnswer(t *testing.T) {
	r := &zkmodel.Request{DeclinedBy: zkmodel.Strings{"x"}}
	pools := []*zkmodel.Component{{ID: "x"}, {ID: "y", Broken: errUnreadable}, {}}
	if !DeclinedByAll(pools, r) {
		t.Error("those that can answer have declined")
	}
}

// A request waits for what a mistake leaves out where the pool has, or may have, all the rest.
func TestLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		labels []string
		rest   string
		want   string // part of why; "" is not left out
	}{
		"one of them":                   {[]string{"a", "frozen"}, "", "label frozen of pool main of cloud is left out of the configuration: line 3"},
		"none of them":                  {[]string{"a"}, "line 9", ""},
		"one that may be in the rest":   {[]string{"a", "z"}, "line 9", "label z of pool main of cloud is left out of the configuration: line 9"},
		"one that nobody has":           {[]string{"z"}, "", ""},
		"beside one that nobody has":    {[]string{"frozen", "z"}, "", ""},
		"the first of two is told":      {[]string{"frozen", "z"}, "line 9", "label frozen of pool main of cloud is left out of the configuration: line 3"},
		"although the pool has it, too": {[]string{"b"}, "line 9", "label b of pool main of cloud is left out of the configuration: line 4"},
	} {
		p := aPool(func(p *Pool) { p.Frozen, p.Rest = map[string]string{"frozen": "line 3", "b": "line 4"}, c.rest })
		if why, so := p.frozen(c.labels); so != (c.want != "") || why != c.want {
			t.Errorf("%s: %t, %q, want %q", name, so, why, c.want)
		}
	}
}

// Of several pools that may come back the one is waited for that left last, and one that nobody has written down has just left.
func TestTheLastThatLeftIsAwaited(t *testing.T) {
	at := time.Unix(1000, 0)
	gone := func(name string, after time.Duration) Absence {
		return Absence{Launcher: name, Provider: "b", Pool: "main", Labels: []string{"x"}, Until: at.Add(after)}
	}
	just := Absence{Launcher: "just", Provider: "b", Pool: "main", Labels: []string{"x"}}
	for want, list := range map[string][]Absence{
		"last":  {gone("first", time.Second), gone("last", time.Minute), gone("middle", 2*time.Second)},
		"just":  {gone("first", time.Second), just, gone("last", time.Minute)},
		"first": {gone("first", time.Second), gone("same", time.Second)},
	} {
		if got := Awaited(list, nil, aRequest("1", "x")); got == nil || got.Launcher != want {
			t.Errorf("waits for %+v, want %s", got, want)
		}
	}
	away := gone("nl02", time.Second)
	if why := away.Why(); !strings.HasSuffix(why, "it may come back until 00:16:41 UTC") {
		t.Errorf("%q", why)
	}
	if why := just.Why(); strings.Contains(why, "until") {
		t.Errorf("%q", why)
	}
}

// Stock is launched where nothing waits: neither for a request that nobody will serve there, nor for one that
// waits for something else than room.
func TestSpareBesideWhatWaits(t *testing.T) {
	frozen := aPool(func(p *Pool) { p.Frozen = map[string]string{"b": "line 3"} })
	pending, broken := aRequest("100-1", "a", "b"), aRequest("100-2", "z")
	pending.State, broken.Broken = zkmodel.RequestPending, errUnreadable
	asks := aRequest("100-3", "z")
	asks.Provider = "far"
	everywhere := []*zkmodel.Component{other("x", "far", 100, "z"), other("y", "cloud", 100, "z")}
	full := []*zkmodel.Node{aNode("7", zkmodel.NodeInUse, "a"), aNode("8", zkmodel.NodeInUse, "a")}
	for name, c := range map[string]struct {
		s    *Snapshot
		want string // part of why not
	}{
		"left out of the configuration": {at([]*Pool{frozen}, nil, []*zkmodel.Request{aRequest("100-1", "b")}), ""},
		"served already":                {at([]*Pool{aPool()}, nil, []*zkmodel.Request{pending}), ""},
		"broken":                        {at([]*Pool{aPool()}, nil, []*zkmodel.Request{broken}), ""},
		"asks for another provider":     {at([]*Pool{aPool()}, nil, []*zkmodel.Request{asks}), ""},
		"the first is named":            {at([]*Pool{aPool()}, full, []*zkmodel.Request{aRequest("100-4", "a"), aRequest("100-5", "a")}), "request 100-4 waits"},
	} {
		c.s.Registered = everywhere
		if name == "broken" {
			c.s.Registered = everywhere[1:]
		}
		if _, why := After(c.s).Spare(c.s.Pools[0], "a"); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}

// A request that is left alone for a moment is decided over by nobody: what it would take of its tenant's limit is there
// for others.
func TestSpareBesideOneLeftAlone(t *testing.T) {
	second := aPool(func(p *Pool) { p.ID, p.Provider = "launcher-second-main", "second" })
	second.Limits[providers.Instances] = 1
	first := aPool()
	delete(first.Offers, "b")
	delete(second.Offers, "a")
	s := at([]*Pool{first, second}, nil, []*zkmodel.Request{tenantRequest("100-1", "red", 1), tenantRequest("100-2", "red", 1)})
	s.Requests[1].NodeTypes, s.Busy = zkmodel.Strings{"b"}, map[string]bool{"100-1": true}
	s.Tenants = map[string]providers.Resources{"red": {providers.Instances: 1}}
	if _, why := After(s).Spare(second, "b"); !strings.Contains(why, "is full") {
		t.Errorf("%q, although request 100-2 takes all there is", why)
	}
}

// Mistake: a decline for want of an image that is carried out like one that no view can change.
// Or one that names a lacking image as its reason where another label is in the way for good.
func TestImagelessPoolsAreNamed(t *testing.T) {
	named := func(id string, change func(*Pool)) *Pool {
		return aPool(func(p *Pool) { p.ID = id; change(p) })
	}
	lacks := func(p *Pool) { p.Offers["b"] = Offer{Needs: p.Offers["b"].Needs} }
	s := &Snapshot{
		Now: time.Unix(1_000_000, 0), Requests: []*zkmodel.Request{aRequest("100-1", "b", "a"), aRequest("100-2", "b", "unicorn")},
		Pools: []*Pool{
			named("one", lacks), named("disabled", func(p *Pool) { p.Disabled = true; lacks(p) }),
			named("two", lacks), named("faulty", func(p *Pool) { p.Offers["b"] = Offer{Fault: "no flavor"} }),
		},
	}
	all := Assign(s)
	if d, declines := all[1].(Decline); !declines || len(d.Pools) != 4 || len(d.Imageless) > 0 || d.Reason != "no pool has the label unicorn" {
		t.Errorf("decision is %+v", all[1])
	}
	d, declines := all[0].(Decline)
	if !declines || !slices.Equal(d.Pools, []string{"one", "disabled", "two", "faulty"}) || !slices.Equal(d.Imageless, []string{"one", "two"}) {
		t.Errorf("decision is %+v", d)
	}
}

// Mistake: that nobody can tell whether an image is ready is taken for that none is; or a request waits for what
// cannot be read although an image is ready.
func TestImagesThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		ready  bool
		unread string
		other  bool // a second label is in the way for good
		want   string
		reason string
	}{
		"none is ready":              {want: "decline", reason: "no image for label b is ready in provider cloud"},
		"it cannot be read":          {unread: "closed", want: "wait", reason: "nobody can tell whether an image for label b is ready in provider cloud: closed"},
		"one is ready all the same":  {ready: true, unread: "closed", want: "accept", reason: "pool main of cloud has room"},
		"nor is another label known": {unread: "closed", other: true, want: "decline", reason: "no pool has the label unicorn"},
	} {
		p := aPool(func(p *Pool) {
			offer := p.Offers["b"]
			offer.Ready, offer.Unread = c.ready, c.unread
			p.Offers["b"] = offer
		})
		labels := []string{"b", "a"}
		if c.other {
			labels[1] = "unicorn"
		}
		d := Assign(&Snapshot{Now: time.Unix(1_000_000, 0), Pools: []*Pool{p}, Requests: []*zkmodel.Request{aRequest("100-1", labels...)}})[0]
		if d.Verdict() != c.want || d.Of().ID != "100-1" || d.Why() != c.reason {
			t.Errorf("%s: %s, %s", name, d.Verdict(), d.Why())
		}
	}
}
