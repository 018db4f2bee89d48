package singleton

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// limitsCloud is a cloud that tells its limits, and what is in the tree of them.
type limitsCloud struct {
	tree
	began time.Time
	asked []time.Duration // since then
	fails bool
	hurry chan struct{}
	ours  func() // is called while the cloud is asked
	count []bool // whether machine m of node 1 was ours

	mu      sync.Mutex
	wanted  bool
	written map[string]string
}

func newLimitsCloud() *limitsCloud {
	return &limitsCloud{began: time.Now(), hurry: make(chan struct{}, 1), written: map[string]string{}}
}

func (c *limitsCloud) Limits(_ context.Context, ours providers.Ours) (providers.Resources, error) {
	c.asked = append(c.asked, time.Since(c.began).Round(time.Second))
	if c.ours != nil {
		c.ours()
	}
	c.count = append(c.count, ours(machine("1", providers.MetaLaunch, "x")))
	if c.fails {
		return nil, errDown
	}
	return providers.Resources{providers.Instances: 5}, nil
}

func (c *limitsCloud) Wanted() (wanted bool) {
	c.change(func() { wanted = c.wanted })
	return wanted
}

func (c *limitsCloud) Hurried() <-chan struct{} { return c.hurry }

func (c *limitsCloud) Get(path string) (recipe.Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, there := c.written[path]
	return recipe.Entry{Data: []byte(data)}, there
}

func (c *limitsCloud) SaveLimits(_ context.Context, provider string, data []byte) error {
	c.change(func() { c.written[zkmodel.LimitsPath(provider)] = string(data) })
	return nil
}

func (c *limitsCloud) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// run has the limits asked for in a bubble, where do changes something meanwhile; it
// returns when the cloud was asked.
func (c *limitsCloud) run(t *testing.T, span time.Duration, do func(told changes)) []time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	told := make(changes, 1)
	done := make(chan error)
	go func() {
		done <- NewLimits("cloud", "site", c, c, c, c, hclog.NewNullLogger(), time.Now).Run(ctx, told)
	}()
	do(told)
	wantNone(t, <-done)
	return c.asked
}

// Catches limits that are asked for too seldom, or so often that it loads the cloud:
// when they are old, when they were taken out of the tree, and when a request waits.
func TestLimitsAreAskedForWhenTheyAreOfUse(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(c *limitsCloud, told changes)
		want []time.Duration
	}{
		"nothing happens": {func(*limitsCloud, changes) {}, []time.Duration{0, 5 * time.Minute, 10 * time.Minute}},
		"taken out of the tree": {func(c *limitsCloud, told changes) {
			<-time.After(time.Minute)
			c.change(func() { delete(c.written, zkmodel.LimitsPath("cloud")) })
			told <- struct{}{}
		}, []time.Duration{0, time.Minute, 6 * time.Minute, 11 * time.Minute}},
		"a request begins to wait": {func(c *limitsCloud, told changes) {
			<-time.After(time.Minute)
			c.change(func() { c.wanted = true })
			c.hurry <- struct{}{}
			<-time.After(20 * time.Second)
			c.change(func() { c.wanted = false })
		}, []time.Duration{0, time.Minute, time.Minute + 4*time.Second, time.Minute + 12*time.Second, 6*time.Minute + 12*time.Second, 11*time.Minute + 12*time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newLimitsCloud()
				got := c.run(t, 12*time.Minute, func(told changes) { tc.do(c, told) })
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
				var limits providers.Resources
				wantNone(t, json.Unmarshal([]byte(c.written[zkmodel.LimitsPath("cloud")]), &limits))
				if limits[providers.Instances] != 5 {
					t.Errorf("%v is written", limits)
				}
			})
		})
	}
}

// Catches a provider that is asked without a pause while it fails, and limits that are
// overwritten by a failure.
func TestLimitsOfAProviderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLimitsCloud()
		c.fails = true
		c.written[zkmodel.LimitsPath("cloud")] = `{"instances": 3}`
		if asked := len(c.run(t, 10*time.Minute, func(changes) {})); asked < 10 || asked > 25 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
		if got := c.written[zkmodel.LimitsPath("cloud")]; got != `{"instances": 3}` {
			t.Errorf("%s is written", got)
		}
	})
}

// Catches machines that are counted twice, by their record and as others': that of a
// record which goes, or comes, while the cloud is asked must count by the record. And those that
// are not counted at all, as their record counts for another provider, for another machine, or for none.
func TestLimitsCountWhatHasARecord(t *testing.T) {
	at := func(provider, launch string) []*zkmodel.Node {
		return []*zkmodel.Node{{ID: "1", Provider: provider, LaunchID: launch}}
	}
	node := func(launch string) []*zkmodel.Node { return at("cloud", launch) }
	has := func(launch, machine string) []*zkmodel.Node {
		list := node(launch)
		list[0].ExternalID = zkmodel.TextValue(machine)
		return list
	}
	left := &zkmodel.Node{ID: "2", Provider: "cloud", State: zkmodel.NodeDeleting, LaunchID: "x", ExternalID: zkmodel.TextValue("m")}
	unread := []*zkmodel.Node{{ID: "1", Broken: errDown}}
	leftover := []*zkmodel.Node{{ID: "1", Broken: errDown, Stat: recipe.Stat{Czxid: 1}}}
	for name, tc := range map[string]struct {
		before, after []*zkmodel.Node
		want          bool
	}{
		"recorded":                          {node("x"), node("x"), true},
		"recorded without a provider":       {at("", "x"), at("", "x"), false},
		"recorded, as one can believe":      {unread, unread, true},
		"a record that never held anything": {leftover, leftover, false},
		"recorded by its id":                {has("x", "m"), has("x", "m"), true},
		"by its id, launch rewritten":       {has("", "m"), has("", "m"), true},
		"by its id, of another launch":      {has("y", "m"), has("y", "m"), true},
		"record has another":                {has("x", "n"), has("x", "n"), false},
		"record of Zuul's has another":      {has("", "n"), has("", "n"), false},
		"recorded as of another provider":   {at("b", "x"), at("b", "x"), false},
		"becomes another provider's":        {node("x"), at("b", "x"), false},
		"goes meanwhile":                    {node("x"), nil, true},
		"comes meanwhile":                   {nil, node("x"), true},
		"not recorded":                      {nil, nil, false},
		"of another launch":                 {node("y"), node("y"), false},
		"left by its launch":                {append(node("y"), left), append(node("y"), left), true},
		"left by its launch meanwhile":      {has("x", "m"), append(node("y"), left), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLimitsCloud()
			c.nodes, c.ours = tc.before, func() { c.nodes = tc.after }
			wantNone(t, NewLimits("cloud", "site", c, c, c, c, hclog.NewNullLogger(), time.Now).ask(t.Context()))
			if got := c.count[0]; got != tc.want {
				t.Errorf("ours: %t", got)
			}
		})
	}
}
