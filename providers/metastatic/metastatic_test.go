package metastatic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/providers/metastatic"
	"poolkeeper/providers/providertest"
)

func section(label configs.MetastaticLabel) configs.Provider {
	return configs.Provider{Name: "slots", Driver: configs.DriverMetastatic, Pools: []configs.Pool{{
		Name: "main", Labels: []configs.PoolLabel{{Name: "small", Connection: "ssh", Settings: &label}},
	}}}
}

var label = configs.MetastaticLabel{BackingLabel: "large", MaxParallelJobs: 3, GraceTime: time.Minute}

func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, dir string) providers.Provider {
			t.Helper()
			p, err := (&drivers.Process{Logger: hclog.NewNullLogger()}).Open(section(label))
			if err != nil {
				t.Fatal(err)
			}
			p.(providers.Backed).OnBacking(newTree(t, dir))
			return p
		},
		Pool: "main", Label: "small", NoImages: true, Slots: true,
	})
}

// open opens a provider, and two if another launcher is needed, on one tree.
func open(t *testing.T, label configs.MetastaticLabel) (*metastatic.Provider, *metastatic.Provider, *tree) {
	t.Helper()
	known := newTree(t, t.TempDir())
	p, other := metastatic.New(section(label)), metastatic.New(section(label))
	p.OnBacking(known)
	other.OnBacking(known)
	return p, other, known
}

func spec(node string) providers.NodeSpec {
	return providers.NodeSpec{NodeID: node, Hostname: "np" + node, Pool: "main", Label: "small", Metadata: map[string]string{
		providers.MetaNode: node, providers.MetaProvider: "slots", providers.MetaLaunch: "launch of " + node,
	}}
}

func create(t *testing.T, p *metastatic.Provider, node string) string {
	t.Helper()
	id, err := p.CreateNode(t.Context(), spec(node))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func list(t *testing.T, known *tree) []providers.BackingNode {
	t.Helper()
	all, _, err := known.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Mistake: a launcher that gives a slot which another has just given.
func TestTwoLaunchersShareBackingNodes(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	create(t, p, "1")
	known.quicker = func() { create(t, other, "2") }
	create(t, p, "3")
	all := list(t, known)
	if len(all) != 1 || all[0].Slots[1].Node != "2" || all[0].Slots[2].Node != "3" {
		t.Errorf("backing nodes %+v", all)
	}
	create(t, other, "4")
	if all = list(t, known); len(all) != 2 {
		t.Errorf("the fourth node of three slots: %+v", all)
	}
	// What becomes free goes first, and the fullest before others.
	if err := p.DeleteNode(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	create(t, other, "5")
	if all = list(t, known); all[0].Slots[1].Node != "5" {
		t.Errorf("after one went: %+v", all)
	}
}

// Mistake: two launchers that both find no room, and both ask for a backing node.
func TestTwoLaunchersAskForOneBackingNode(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	known.quicker = func() { create(t, other, "1") }
	create(t, p, "2")
	if all := list(t, known); len(all) != 1 || all[0].Slots[0].Node != "1" || all[0].Slots[1].Node != "2" {
		t.Errorf("backing nodes %+v", all)
	}
}

// Mistake: a node on a backing node that has failed, is too old, or is to leave; or one that
// waits for it for ever.
func TestTakesNoNewNodes(t *testing.T) {
	t.Parallel()
	aging := label
	aging.MaxAge = time.Hour
	for name, change := range map[string]func(n *providers.BackingNode){
		"failed":  func(n *providers.BackingNode) { n.Failed = "it burns" },
		"leaving": func(n *providers.BackingNode) { n.Leaving = "drained" },
		"too old": func(n *providers.BackingNode) { n.Launched = time.Now().Add(-2 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, other, known := open(t, aging)
			create(t, p, "1")
			known.change(change)
			create(t, other, "2")
			if all := list(t, known); len(all) != 2 || all[1].Slots[0].Node != "2" {
				t.Errorf("backing nodes %+v", all)
			}
		})
	}
}

func TestWaitEndsWithTheBackingNode(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	known.held = true
	create(t, p, "1")
	create(t, other, "2")
	waited := make(chan error, 2)
	for node, who := range map[string]*metastatic.Provider{"1": p, "2": other} {
		go func() {
			_, err := who.WaitNode(t.Context(), node)
			waited <- err
		}()
	}
	known.change(func(n *providers.BackingNode) { n.Failed = "no room" })
	for range 2 {
		if err := <-waited; !errors.Is(err, providers.ErrNodeFailed) || !strings.Contains(err.Error(), "no room") {
			t.Errorf("waited: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	known.change(func(n *providers.BackingNode) { n.Failed = "" })
	if _, err := p.WaitNode(ctx, "1"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "large") {
		t.Errorf("an end that says what was waited for: %v", err)
	}
	known.change(there)
	if i, err := p.WaitNode(t.Context(), "1"); err != nil || i.Slot.Backing == "" || i.ExternalID != "1" {
		t.Errorf("%+v, %v", i, err)
	}
}

// Mistake: a launch of a node whose number came again that goes on in another's slot.
func TestSlotOfAnotherLaunch(t *testing.T) {
	t.Parallel()
	p, _, known := open(t, label)
	first := create(t, p, "1")
	again := spec("1")
	again.Metadata[providers.MetaLaunch] = "another"
	second, err := p.CreateNode(t.Context(), again)
	if err != nil || second == first {
		t.Fatalf("%s, %v", second, err)
	}
	if err := p.DeleteNode(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if all := list(t, known); !all[0].Slots[0].Free() || all[0].Slots[1].ExternalID != second {
		t.Errorf("backing nodes %+v", all)
	}
}

// Mistake: a slot of a node of Nodepool's that is given to another while its record is there.
func TestRecordedSlotStays(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	create(t, p, "1")
	known.change(func(n *providers.BackingNode) {
		n.Slots[1] = providers.SlotUse{ExternalID: "7", Node: "7", Recorded: true}
	})
	if err := other.DeleteNode(t.Context(), "7"); err != nil {
		t.Fatal(err)
	}
	create(t, other, "2")
	if all := list(t, known); all[0].Slots[1].Node != "7" || all[0].Slots[2].Node != "2" {
		t.Errorf("backing nodes %+v", all)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	create(t, p, "1")
	if err := other.Unreachable(t.Context(), "1", errors.New("connection refused")); err != nil {
		t.Fatal(err)
	}
	all := list(t, known)
	if !strings.Contains(all[0].Failed, "connection refused") || !p.Keeps(all[0]).IsZero() {
		t.Errorf("backing node %+v", all[0])
	}
}

func TestKeeps(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		label          configs.MetastaticLabel
		launched, used time.Duration // ago
		change         func(n *providers.BackingNode)
		want           time.Duration
		now            bool
	}{
		"grace-time":                {label: configs.MetastaticLabel{GraceTime: time.Minute}, launched: time.Hour, used: 10 * time.Second, want: 50 * time.Second},
		"min-retention-time":        {label: configs.MetastaticLabel{GraceTime: time.Minute, MinRetentionTime: time.Hour}, launched: 10 * time.Minute, used: 5 * time.Minute, want: 50 * time.Minute},
		"max-age before the grace":  {label: configs.MetastaticLabel{GraceTime: time.Hour, MaxAge: time.Hour}, launched: 50 * time.Minute, want: 10 * time.Minute},
		"one that failed":           {label: configs.MetastaticLabel{MinRetentionTime: time.Hour}, change: func(n *providers.BackingNode) { n.Failed = "no" }, now: true},
		"one that is to leave":      {label: configs.MetastaticLabel{MinRetentionTime: time.Hour}, change: func(n *providers.BackingNode) { n.Leaving = "drained" }, now: true},
		"a label that is there not": {label: configs.MetastaticLabel{MinRetentionTime: time.Hour}, change: func(n *providers.BackingNode) { n.Label = "gone" }, now: true},
	} {
		n := providers.BackingNode{Label: "small", Launched: now.Add(-c.launched), Used: now.Add(-c.used)}
		if c.change != nil {
			c.change(&n)
		}
		until := metastatic.New(section(c.label)).Keeps(n)
		if c.now != until.IsZero() || !c.now && until.Sub(now) != c.want {
			t.Errorf("%s: until %s, %s from now", name, until, until.Sub(now))
		}
	}
}

func TestWithoutATreeNothingIsSaid(t *testing.T) {
	t.Parallel()
	p := metastatic.New(section(label))
	_, created := p.CreateNode(t.Context(), spec("1"))
	_, listed := p.ListNodes(t.Context())
	for what, err := range map[string]error{"created": created, "listed": listed, "deleted": p.DeleteNode(t.Context(), "1")} {
		if !errors.Is(err, providers.ErrUnusable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// launching has nodes be launched for a request, as far as the tree knows.
func launching(known *tree, request string, nodes ...string) {
	known.change(func(n *providers.BackingNode) {
		n.Unheard = n.Node == ""
		for i, use := range n.Slots {
			if slices.Contains(nodes, use.Node) {
				n.Slots[i].For = request
			}
		}
	})
}

// waitFor waits for a node until the test ends.
func waitFor(t *testing.T, p *metastatic.Provider, node string) <-chan error {
	t.Helper()
	waited := make(chan error, 1)
	go func() {
		_, err := p.WaitNode(t.Context(), node)
		waited <- err
	}()
	return waited
}

// Mistakes: a node that waits for a backing node although a slot of another is free; a newer one
// that gets it; one that is left in both, or in neither.
func TestWhatWaitsGetsWhatBecomesFree(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	for _, node := range []string{"1", "2", "3"} {
		create(t, p, node)
	}
	known.held = true
	create(t, p, "4")
	create(t, p, "5")
	launching(known, "200-4", "4")
	launching(known, "200-5", "5")
	younger, older := waitFor(t, p, "5"), waitFor(t, other, "4")
	if err := p.DeleteNode(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	if err := <-older; err != nil {
		t.Fatal(err)
	}
	all := list(t, known)
	if all[0].Slots[1].Node != "4" || !all[1].Slots[0].Free() || all[1].Slots[1].Node != "5" {
		t.Errorf("backing nodes %+v", all)
	}
	// One that comes now leaves what becomes free to who waits.
	known.quicker = func() { _ = p.DeleteNode(t.Context(), "1") } // before the save
	create(t, other, "6")
	if err := <-younger; err != nil {
		t.Fatal(err)
	}
	if all = list(t, known); all[0].Slots[0].Node != "5" || used(all[1]) != 1 {
		t.Errorf("backing nodes %+v", all)
	}
}

// used counts the slots that are used.
func used(n providers.BackingNode) int {
	return len(slices.DeleteFunc(n.Slots, providers.SlotUse.Free))
}

// Mistakes: a request that gives way although nobody waits for what it has, or to a younger one; or
// that does not, so that each waits for the other.
func TestYoungerRequestGivesWay(t *testing.T) {
	t.Parallel()
	p, other, known := open(t, label)
	for _, node := range []string{"1", "2", "3"} {
		create(t, p, node)
	}
	known.held = true
	create(t, p, "4")
	create(t, p, "5")
	launching(known, "200-1", "1", "4")
	launching(known, "200-2", "2", "3", "5")
	older, younger := waitFor(t, p, "4"), waitFor(t, other, "5")
	if err := <-younger; !errors.Is(err, providers.ErrGivesWay) || !strings.Contains(err.Error(), "200-1") {
		t.Fatalf("the younger one: %v", err)
	}
	known.change(func(n *providers.BackingNode) { // its siblings go with it
		for i, use := range n.Slots {
			n.Slots[i].Over = use.Node == "5"
		}
	})
	create(t, p, "6")
	launching(known, "200-2", "6")
	if _, err := other.WaitNode(t.Context(), "6"); !errors.Is(err, providers.ErrGivesWay) {
		t.Errorf("a sibling: %v", err)
	}
	for _, node := range []string{"2", "3"} {
		if err := other.DeleteNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-older; err != nil {
		t.Errorf("the older one: %v", err)
	}
}
