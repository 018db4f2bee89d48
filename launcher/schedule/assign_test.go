package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// aPool is a pool with labels a and b, of one instance each, and room for two.
func aPool(change ...func(*Pool)) *Pool {
	one := Offer{Needs: providers.Resources{providers.Instances: 1, providers.RAM: 1024}, Ready: true}
	p := &Pool{
		ID: "launcher-cloud-main", Provider: "cloud", Name: "main", Priority: 100, Room: -1, HoldsQuota: true,
		Limits: providers.Resources{providers.Instances: 2}, Cloud: providers.Resources{providers.RAM: 8192},
		Offers: map[string]Offer{"a": one, "b": one},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func aRequest(id string, labels ...string) *zkmodel.Request {
	return &zkmodel.Request{ID: id, State: zkmodel.RequestRequested, NodeTypes: labels, Reuse: true}
}

func aNode(id string, state zkmodel.NodeState, label string) *zkmodel.Node {
	return &zkmodel.Node{
		ID: id, State: state, Provider: "cloud", Pool: "main", Type: zkmodel.Strings{label},
		Resources: map[string]int{providers.Instances: 1, providers.RAM: 1024},
	}
}

func withServer(n *zkmodel.Node) *zkmodel.Node {
	n.ExternalID = zkmodel.TextValue("vm")
	return n
}

// other is a pool of another launcher.
func other(id, provider string, priority int, labels ...string) *zkmodel.Component {
	return &zkmodel.Component{ID: id, ProviderName: provider, Priority: priority, SupportedLabels: labels}
}

// show is a decision in a few words: what, and with which nodes.
func show(d Decision) string {
	text := d.Verdict()
	if yes, accepts := d.(Accept); accepts {
		text += " in " + yes.Pool.Provider
		for _, place := range yes.Places {
			text += fmt.Sprintf(" %s=%s", place.Label, place.Node)
		}
	}
	return text
}

// verdicts are the kinds of decisions, in their order.
func verdicts(decisions []Decision) string {
	var list []string
	for _, d := range decisions {
		list = append(list, d.Verdict())
	}
	return strings.Join(list, " ")
}

func TestAssign(t *testing.T) {
	second := aPool(func(p *Pool) { p.ID, p.Provider = "launcher-second-main", "second" })
	for _, tc := range []struct {
		name       string
		pools      []*Pool
		nodes      []*zkmodel.Node
		registered []*zkmodel.Component
		requests   []*zkmodel.Request
		want       []string
		reason     string // of the first decision
	}{
		{
			name:     "one label",
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"accept in cloud a="},
		},
		{
			name:     "two labels, one ready",
			nodes:    []*zkmodel.Node{aNode("7", "ready", "b")},
			requests: []*zkmodel.Request{aRequest("100-1", "a", "b")},
			want:     []string{"accept in cloud a= b=7"},
		},
		{
			name:     "a ready node serves one place only",
			nodes:    []*zkmodel.Node{aNode("7", "ready", "a")},
			requests: []*zkmodel.Request{aRequest("100-1", "a", "a")},
			want:     []string{"accept in cloud a=7 a="},
		},
		{
			name:     "reuse although the pool is full",
			nodes:    []*zkmodel.Node{aNode("7", "ready", "a"), aNode("8", "in-use", "a")},
			requests: []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "a")},
			want:     []string{"accept in cloud a=7", "wait"},
		},
		{
			name:  "no reuse where it is not wanted, allocated or locked",
			pools: []*Pool{aPool(func(p *Pool) { delete(p.Limits, providers.Instances) })},
			nodes: []*zkmodel.Node{
				func() *zkmodel.Node { n := aNode("7", "ready", "a"); n.AllocatedTo = "100-9"; return n }(),
				func() *zkmodel.Node { n := aNode("8", "ready", "a"); n.Locked = true; return n }(),
			},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"accept in cloud a="},
		},
		{
			name:  "fresh nodes only",
			nodes: []*zkmodel.Node{aNode("7", "ready", "a")},
			requests: []*zkmodel.Request{
				func() *zkmodel.Request { r := aRequest("100-1", "a"); r.Reuse = false; return r }(),
			},
			want: []string{"accept in cloud a="},
		},
		{
			name:     "full: first come, first served",
			requests: []*zkmodel.Request{aRequest("100-3", "a"), aRequest("100-1", "a"), aRequest("100-2", "a")},
			want:     []string{"accept in cloud a=", "accept in cloud a=", "wait"},
		},
		{
			name:     "a small request queues behind a large one",
			nodes:    []*zkmodel.Node{aNode("7", "in-use", "a")},
			requests: []*zkmodel.Request{aRequest("100-1", "a", "b"), aRequest("100-2", "a")},
			want:     []string{"wait", "wait"},
			reason:   "pool main is full: instances 1 used, 2 needed, limit 2",
		},
		{
			name:  "priority, then relative priority",
			nodes: []*zkmodel.Node{aNode("7", "in-use", "a")},
			requests: []*zkmodel.Request{
				aRequest("200-1", "a"),
				func() *zkmodel.Request { r := aRequest("100-2", "a"); r.RelativePriority = 5; return r }(),
				aRequest("100-3", "a"),
			},
			want: []string{"accept in cloud a=", "wait", "wait"}, // 100-3, 100-2, 200-1
		},
		{
			name:     "the cloud's memory counts too",
			pools:    []*Pool{aPool(func(p *Pool) { p.Cloud = providers.Resources{providers.RAM: 1500} })},
			nodes:    []*zkmodel.Node{withServer(aNode("7", "deleting", "a"))},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"wait"},
			reason:   "provider cloud is full: ram 1024 used, 1024 needed, limit 1500",
		},
		{
			name:     "what never fits is declined",
			requests: []*zkmodel.Request{aRequest("100-1", "a", "a", "b"), aRequest("100-2", "a")},
			want:     []string{"decline", "accept in cloud a="},
			reason:   "exceeds the limits of pool main: instances 0 used, 3 needed, limit 2",
		},
		{
			name:     "unknown label",
			requests: []*zkmodel.Request{aRequest("100-1", "z")},
			want:     []string{"decline"},
			reason:   "no pool has the label z",
		},
		{
			name:       "unknown to us, known to others",
			registered: []*zkmodel.Component{other("x", "elsewhere", 100, "z")},
			requests:   []*zkmodel.Request{aRequest("100-1", "z")},
			want:       []string{"yield"},
		},
		{
			name:       "known to others who have declined",
			registered: []*zkmodel.Component{other("x", "elsewhere", 100, "z")},
			requests: []*zkmodel.Request{
				func() *zkmodel.Request { r := aRequest("100-1", "z"); r.DeclinedBy = zkmodel.Strings{"x"}; return r }(),
			},
			want: []string{"decline"},
		},
		{
			name: "too large for the pool that has the label, and unknown to the other",
			pools: []*Pool{aPool(), aPool(func(p *Pool) {
				p.ID, p.Name = "launcher-cloud-other", "other"
				p.Offers = map[string]Offer{"b": p.Offers["b"]}
			})},
			requests: []*zkmodel.Request{aRequest("100-1", "a", "a", "a")},
			want:     []string{"decline"},
			reason:   "exceeds the limits of pool main: instances 0 used, 3 needed, limit 2",
		},
		{
			name:  "unknown, and too large for those that know it",
			pools: []*Pool{aPool(func(p *Pool) { p.Offers = map[string]Offer{"b": p.Offers["b"]} })},
			requests: []*zkmodel.Request{func() *zkmodel.Request {
				r := aRequest("100-1", "a", "a", "a")
				r.DeclinedBy, r.Reason = zkmodel.Strings{"x"}, "exceeds the limits of pool main"
				return r
			}()},
			registered: []*zkmodel.Component{other("x", "elsewhere", 100, "a")},
			want:       []string{"decline"},
			reason:     "exceeds the limits of pool main",
		},
		{
			name: "no image", pools: []*Pool{aPool(func(p *Pool) {
				p.Offers["a"] = Offer{Needs: providers.Resources{providers.Instances: 1}}
			})},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"decline"},
			reason:   "no image for label a is ready in provider cloud",
		},
		{
			name:     "disabled pool",
			pools:    []*Pool{aPool(func(p *Pool) { p.Disabled = true })},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"decline"},
		},
		{
			name: "declined here already",
			requests: []*zkmodel.Request{func() *zkmodel.Request {
				r := aRequest("100-1", "a")
				r.DeclinedBy = zkmodel.Strings{"launcher-cloud-main"}
				return r
			}()},
			want: []string{"yield"},
		},
		{
			name: "declined by all, the last of whom has left",
			requests: []*zkmodel.Request{func() *zkmodel.Request {
				r := aRequest("100-1", "a")
				r.DeclinedBy, r.Reason = zkmodel.Strings{"launcher-cloud-main"}, "launch failed"
				return r
			}()},
			registered: []*zkmodel.Component{other("launcher-cloud-main", "cloud", 100, "a")},
			want:       []string{"decline"},
			reason:     "launch failed",
		},
		{
			name:  "the second pool serves what the first cannot",
			pools: []*Pool{aPool(func(p *Pool) { p.Disabled = true }), second},
			requests: []*zkmodel.Request{
				aRequest("100-1", "a"),
			},
			want: []string{"accept in second a="},
		},
		{
			name:     "the preferred pool first, the other when it is full",
			pools:    []*Pool{aPool(), aPool(func(p *Pool) { p.ID, p.Provider, p.Priority = "launcher-best", "best", 10 })},
			requests: []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "a"), aRequest("100-3", "a")},
			want:     []string{"accept in best a=", "accept in best a=", "accept in cloud a="},
		},
		{
			name:       "somebody else's preferred pool",
			registered: []*zkmodel.Component{other("x", "elsewhere", 10, "a")},
			requests:   []*zkmodel.Request{aRequest("100-1", "a")},
			want:       []string{"yield"},
		},
		{
			name:  "another provider is asked for",
			pools: []*Pool{aPool(), second},
			requests: []*zkmodel.Request{
				func() *zkmodel.Request { r := aRequest("100-1", "a"); r.Provider = "second"; return r }(),
			},
			want: []string{"accept in second a="},
		},
		{
			name: "a provider that nobody has is no hindrance",
			requests: []*zkmodel.Request{
				func() *zkmodel.Request { r := aRequest("100-1", "a"); r.Provider = "moon"; return r }(),
			},
			want: []string{"accept in cloud a="},
		},
		{
			name: "the provider is not open yet",
			pools: []*Pool{aPool(func(p *Pool) {
				p.Unavailable, p.Offers = "provider cloud is not open yet", map[string]Offer{"a": {Ready: true}}
			})},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"wait"},
			reason:   "provider cloud is not open yet",
		},
		{
			name: "a size that is not known holds up no other label",
			pools: []*Pool{aPool(func(p *Pool) {
				p.Offers["b"] = Offer{Ready: true}
			})},
			requests: []*zkmodel.Request{aRequest("100-1", "b"), aRequest("100-2", "a")},
			want:     []string{"wait", "accept in cloud a="},
		},
		{
			name:     "max-concurrency",
			pools:    []*Pool{aPool(func(p *Pool) { p.Room = 1 })},
			requests: []*zkmodel.Request{aRequest("100-1", "a"), aRequest("100-2", "a")},
			want:     []string{"accept in cloud a=", "wait"},
		},
		{
			name:     "max-concurrency 0",
			pools:    []*Pool{aPool(func(p *Pool) { p.Idle, p.Room = true, 0 })},
			requests: []*zkmodel.Request{aRequest("100-1", "a")},
			want:     []string{"yield"},
		},
		{
			name:     "no label at all",
			requests: []*zkmodel.Request{aRequest("100-1")},
			want:     []string{"decline"},
		},
		{
			name: "done, busy and broken ones get no decision; a lost one begins again",
			requests: []*zkmodel.Request{
				{ID: "100-1", State: zkmodel.RequestFulfilled},
				{ID: "100-2", State: zkmodel.RequestPending},
				{ID: "100-3", State: zkmodel.RequestPending},
				aRequest("100-busy", "a"),
				{ID: "100-5", State: "melting"},
				{ID: "100-6", State: zkmodel.RequestRequested, Broken: providers.ErrInvalid},
			},
			want: []string{"reclaim"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snap := &Snapshot{
				Now: time.Unix(1000, 0), Requests: tc.requests, Nodes: tc.nodes, Registered: tc.registered,
				Pools: tc.pools, Busy: map[string]bool{"100-busy": true}, Lost: map[string]bool{"100-3": true},
			}
			if snap.Pools == nil {
				snap.Pools = []*Pool{aPool()}
			}
			decisions := Assign(snap)
			var got []string
			for _, d := range decisions {
				got = append(got, show(d))
				if d.Why() == "" {
					t.Errorf("request %s: %s without a reason", d.Of().ID, d.Verdict())
				}
			}
			if strings.Join(got, "; ") != strings.Join(tc.want, "; ") {
				t.Fatalf("decided %q, want %q\n%s", got, tc.want, decisions[0].Why())
			}
			if tc.reason != "" && decisions[0].Why() != tc.reason {
				t.Errorf("reason %q, want %q", decisions[0].Why(), tc.reason)
			}
		})
	}
}

func TestDeclinedByAll(t *testing.T) {
	pools := []*zkmodel.Component{{ID: "x"}, {ID: "y"}, {Broken: providers.ErrInvalid}}
	r := &zkmodel.Request{DeclinedBy: zkmodel.Strings{"x", "gone"}}
	if DeclinedByAll(pools, r) {
		t.Error("y has not declined")
	}
	r.DeclinedBy = append(r.DeclinedBy, "y")
	if !DeclinedByAll(pools, r) {
		t.Error("both have declined")
	}
}
