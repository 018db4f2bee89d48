package schedule

import (
	"strings"
	"testing"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// What nobody has asked for is launched after all that waits, in room that is left.
// Mistakes: a request whose room is taken; an idle node that must make room; a node of
// which a limit says no; one that waits for ever though nobody waits for its provider.
func TestSpare(t *testing.T) {
	t.Parallel()
	full := []*zkmodel.Node{aNode("1", zkmodel.NodeReady, "a"), aNode("2", zkmodel.NodeInUse, "a")}
	imageless := func(p *Pool) {
		p.Offers["a"] = Offer{Needs: providers.Resources{providers.Instances: 1}}
	}
	busy := &Snapshot{Busy: map[string]bool{"200-1": true}, Requests: []*zkmodel.Request{aRequest("200-1", "a")}}
	begun := &Snapshot{Busy: busy.Busy, Requests: busy.Requests, Nodes: []*zkmodel.Node{aNode("1", zkmodel.NodeInit, "a")}}
	begun.Nodes[0].AllocatedTo = "200-1"
	for name, c := range map[string]struct {
		snap  *Snapshot
		pools []*Pool // aPool where none is named; the first is asked
		label string  // a where none is named
		want  string  // part of why not; "" when it can be launched
	}{
		"there is room":                         {},
		"no image is ready yet":                 {pools: []*Pool{aPool(imageless)}},
		"the pool is full of idle nodes, too":   {snap: &Snapshot{Nodes: full}, want: "pool main is full"},
		"the provider is full":                  {pools: []*Pool{aPool(func(p *Pool) { p.Cloud[providers.RAM] = 1500 })}, snap: &Snapshot{Nodes: full[:1]}, want: "provider cloud is full"},
		"it can never hold it":                  {pools: []*Pool{aPool(func(p *Pool) { p.Cloud[providers.RAM] = 500 })}, want: "exceeds the limits of provider cloud"},
		"a request takes what is left":          {snap: &Snapshot{Nodes: full[1:], Requests: []*zkmodel.Request{aRequest("200-1", "a")}}, want: "pool main is full"},
		"a request leaves room":                 {snap: &Snapshot{Requests: []*zkmodel.Request{aRequest("200-1", "a")}}},
		"a request waits":                       {snap: &Snapshot{Nodes: full, Requests: []*zkmodel.Request{aRequest("200-1", "a", "b")}}, want: "request 200-1 waits"},
		"a request is left alone for a moment":  {snap: busy, want: "request 200-1 waits"},
		"a request was accepted just now":       {snap: begun},
		"another launcher's pool is asked":      {snap: &Snapshot{Registered: []*zkmodel.Component{other("x", "cloud", 100, "z")}, Requests: []*zkmodel.Request{aRequest("200-1", "z")}}, want: "request 200-1 waits"},
		"a request is no business of the cloud": {snap: &Snapshot{Registered: []*zkmodel.Component{other("x", "far", 100, "z")}, Requests: []*zkmodel.Request{aRequest("200-1", "z")}}},
		"the label is not there":                {label: "z", want: "does not have the label z"},
		"its size is not known":                 {pools: []*Pool{aPool(func(p *Pool) { p.Offers["a"] = Offer{} })}, want: "has not told yet"},
		"the provider is down":                  {pools: []*Pool{aPool(func(p *Pool) { p.Unavailable = "it is down" })}, want: "it is down"},
		"the pool is disabled":                  {pools: []*Pool{aPool(func(p *Pool) { p.Disabled = true })}, want: "is disabled"},
		"nothing is launched there":             {pools: []*Pool{aPool(func(p *Pool) { p.Idle = true })}, want: "max-concurrency 0"},
		"the provider is busy":                  {pools: []*Pool{aPool(func(p *Pool) { p.Room = 0 })}, want: "is busy"},
		"its machines are there already":        {pools: []*Pool{aPool(func(p *Pool) { p.Static = true })}, want: "exist already"},
		"the label is left out":                 {pools: []*Pool{aPool(func(p *Pool) { p.Frozen = map[string]string{"a": "line 3"} })}, want: "line 3"},
		"the cloud has refused": {
			pools: []*Pool{aPool(func(p *Pool) {
				p.Learned = lesson.View{Lesson: lesson.Lesson{Failures: 1, Reason: "no host", Refused: []providers.Resources{{providers.Instances: 1}}}}
			})},
			snap: &Snapshot{Uses: map[string]*lesson.Use{"cloud": {}}}, want: "no host",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := Snapshot{}
			if c.snap != nil {
				snap = *c.snap
			}
			if snap.Pools = c.pools; len(c.pools) == 0 {
				snap.Pools = []*Pool{aPool()}
			}
			label := c.label
			if label == "" {
				label = "a"
			}
			_, why := After(&snap).Spare(snap.Pools[0], label)
			if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("%q, want %q", why, c.want)
			}
		})
	}
}
