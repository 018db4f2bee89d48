package singleton

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// leakCloud is a cloud with machines, and the records of their nodes.
type leakCloud struct {
	tree
	machines []providers.NodeInfo
	listing  error
	listed   func() // is called as machines are listed
	absent   error
	locked   error
	reread   *zkmodel.Node     // a node's record as it is found under its lock, if not that of the tree
	launches map[string]string // by node, in the tree
	launch   func() error      // why the launch of a node cannot be read, if it cannot
	cleaned  map[string]int
	did      []string
	counted  int
	kept     map[string]time.Time // what outlives a worker
	reads    int
	saves    int
	memory   error // why that cannot be used
	saving   error // why that cannot be written
	log      *book // of the last worker
	doubts   map[string]schedule.Doubt
	inside   int // decisions under way
	wrong    []string
}

// decide counts decisions; of is what is done, in one or outside of any.
func (c *leakCloud) decide(context.Context) (done func()) {
	c.inside++
	return func() { c.inside-- }
}

func (c *leakCloud) of(what string, decisions int) {
	if c.inside != decisions {
		c.wrong = append(c.wrong, what)
	}
}

func (c *leakCloud) ListNodes(context.Context) ([]providers.NodeInfo, error) {
	c.of("list machines", 0)
	if c.listed != nil {
		c.listed()
	}
	return c.machines, c.listing
}

func (c *leakCloud) Remove(_ context.Context, _ zkmodel.Proof, node, externalID string) error {
	c.of("delete a machine", 0)
	c.did = append(c.did, "remove "+externalID+" of "+node)
	return nil
}

func (c *leakCloud) CleanLeaks(_ context.Context, site string) (map[string]int, error) {
	c.of("clean", 0)
	c.did = append(c.did, "clean "+site)
	return c.cleaned, nil
}

func (c *leakCloud) Doubt(doubts map[string]schedule.Doubt) { c.doubts = doubts }

func (c *leakCloud) MoreRoom() { c.did = append(c.did, "more room") }

func (c *leakCloud) Absent(_ context.Context, node string) (zkmodel.Proof, error) {
	c.of("prove", 1)
	if c.Node(node) != nil {
		return zkmodel.Proof{}, zkmodel.ErrRecorded
	}
	return zkmodel.Proof{}, c.absent
}

func (c *leakCloud) LaunchOf(_ context.Context, n *zkmodel.Node) (string, error) {
	c.of("judge a machine", 1)
	if c.launch != nil {
		if err := c.launch(); err != nil {
			return "", err
		}
	}
	return c.launches[n.ID], nil
}

func (c *leakCloud) Locked(ctx context.Context, node string, work func(context.Context, *zkmodel.Node, func() (zkmodel.Proof, error)) error) error {
	if c.locked != nil {
		return c.locked
	}
	n := c.Node(node)
	if c.reread != nil {
		n = c.reread
	}
	return work(ctx, n, func() (zkmodel.Proof, error) { return zkmodel.Proof{}, nil })
}

func (c *leakCloud) Findings(context.Context) (map[string]time.Time, error) {
	c.reads++
	if c.memory != nil {
		return nil, c.memory
	}
	return maps.Clone(c.kept), nil
}

func (c *leakCloud) SaveFindings(_ context.Context, found map[string]time.Time) error {
	err := errors.Join(c.memory, c.saving)
	if err == nil {
		c.kept, c.saves = maps.Clone(found), c.saves+1
	}
	return err
}

// machine is machine m, of a node of this site.
func machine(node string, more ...string) providers.NodeInfo {
	meta := map[string]string{providers.MetaNode: node, providers.MetaProvider: "cloud", providers.MetaSite: "site"}
	for i := 0; i+1 < len(more); i += 2 {
		meta[more[i]] = more[i+1]
	}
	return providers.NodeInfo{ExternalID: "m", Metadata: meta}
}

func (c *leakCloud) leaks() *Leaks {
	return c.leaksAt(fixed)
}

// leaksAt is leaks with a clock.
func (c *leakCloud) leaksAt(clock func() time.Time) *Leaks {
	book, log := newBook()
	c.log = book
	return NewLeaks("cloud", "site", c, c, c, c, func() { c.counted++ }, c.decide, log, clock)
}

// passes has the cloud searched some times, and returns what was removed.
func (c *leakCloud) passes(t *testing.T, times int) string {
	t.Helper()
	l := c.leaks()
	for range times {
		wantNone(t, l.pass(t.Context()))
	}
	if len(c.wrong) > 0 || c.inside != 0 {
		t.Errorf("within or without a decision, as it must not be: %q; %d are not left", c.wrong, c.inside)
	}
	var removed []string
	for _, did := range c.did {
		if strings.HasPrefix(did, "remove") {
			removed = append(removed, did)
		}
	}
	return strings.Join(removed, ", ")
}

// Catches a search in what Nodepool's launcher has for itself: what looks leaked there is its own.
func TestNothingIsSearchedBesideARival(t *testing.T) {
	c := &leakCloud{machines: []providers.NodeInfo{machine("7")}}
	l, rival := c.leaks(), "Nodepool's launcher"
	l.Rival = func() string { return rival }
	for range 3 {
		wantNone(t, l.pass(t.Context()))
	}
	if len(c.did) > 0 {
		t.Errorf("beside a rival: %q", c.did)
	}
	rival = ""
	wantNone(t, l.pass(t.Context()))
	rival = "Nodepool's launcher, again"
	wantNone(t, l.pass(t.Context()))
	rival = ""
	wantNone(t, l.pass(t.Context())) // not the second one in a row
	if c.counted > 0 {
		t.Errorf("before and after it: %q", c.did)
	}
	wantNone(t, l.pass(t.Context()))
	if c.counted != 1 {
		t.Errorf("without it: %q", c.did)
	}
}

// Catches a search that deletes what is recorded, another installation's, another
// provider's or nobody's, or that does not delete what leaked, or in the first search; one that
// asks the cloud within a decision, so that a push of a configuration waits for it.
func TestLeaksAreWhatHasNoRecord(t *testing.T) {
	node := func(id, external string) *zkmodel.Node {
		return &zkmodel.Node{ID: id, State: zkmodel.NodeReady, Provider: "cloud", ExternalID: zkmodel.TextValue(external)}
	}
	for name, tc := range map[string]struct {
		machine  providers.NodeInfo
		nodes    []*zkmodel.Node
		launches map[string]string
		want     string
	}{
		"leaked":                 {machine: machine("1"), want: "remove m of 1"},
		"made by Nodepool":       {machine: machine("1", providers.MetaSite, ""), want: "remove m of 1"},
		"recorded":               {machine: machine("1"), nodes: []*zkmodel.Node{node("1", "m")}},
		"another installation's": {machine: machine("1", providers.MetaSite, "theirs")},
		"another provider's":     {machine: machine("1", providers.MetaProvider, "b")},
		"of no node":             {machine: machine("")},
		"of another launch":      {machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{node("1", "n")}, launches: map[string]string{"1": "y"}, want: "remove m of 1"},
		"its launch went on without it": {
			machine: machine("1", providers.MetaLaunch, "x"), launches: map[string]string{"1": "y"},
			nodes: []*zkmodel.Node{node("1", "n"), {ID: "2", State: zkmodel.NodeDeleting, Provider: "cloud", LaunchID: "x", ExternalID: zkmodel.TextValue("m")}},
		},
		"its launch went on without it and has ended": {
			machine: machine("1", providers.MetaLaunch, "x"),
			nodes:   []*zkmodel.Node{{ID: "2", State: zkmodel.NodeDeleting, Provider: "cloud", ExternalID: zkmodel.TextValue("m")}},
		},
		"launch not known":          {machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{node("1", "")}},
		"launch known, id the same": {machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{node("1", "m")}, launches: map[string]string{"1": "y"}},
		"record of another provider": {
			machine: machine("1"), want: "remove m of 1",
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeReady, Provider: "b", ExternalID: zkmodel.TextValue("n")}},
		},
		"record of Nodepool's in which a person has named another provider": {
			machine: machine("1", providers.MetaSite, ""),
			nodes:   []*zkmodel.Node{{ID: "1", State: zkmodel.NodeHold, Provider: "b", ExternalID: zkmodel.TextValue("m")}},
		},
		"record that never held anything": {
			machine: machine("1", providers.MetaSite, ""), want: "remove m of 1",
			nodes: []*zkmodel.Node{{ID: "1", Broken: errDown, Stat: recipe.Stat{Czxid: 1}}},
		},
		"record of another provider, of another launch": {
			machine: machine("1", providers.MetaLaunch, "x"), launches: map[string]string{"1": "y"}, want: "remove m of 1",
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeReady, Provider: "b", ExternalID: zkmodel.TextValue("m")}},
		},
		"record in which a person has named another provider": {
			machine: machine("1", providers.MetaLaunch, "x"), launches: map[string]string{"1": "x"},
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeHold, Provider: "b", ExternalID: zkmodel.TextValue("m")}},
		},
		"record of another provider, of no known launch, without a machine": {
			machine: machine("1", providers.MetaLaunch, "x"), want: "remove m of 1",
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeReady, Provider: "b"}},
		},
		"record in which a person has named another provider, of no known launch": {
			machine: machine("1", providers.MetaLaunch, "x"),
			nodes:   []*zkmodel.Node{{ID: "1", State: zkmodel.NodeHold, Provider: "b", ExternalID: zkmodel.TextValue("m")}},
		},
		"record that is to be deleted and names no provider": {
			machine: machine("1", providers.MetaLaunch, "x"), launches: map[string]string{"1": "x"}, want: "remove m of 1",
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeDeleting}},
		},
		"record that names no provider": {
			machine: machine("1", providers.MetaLaunch, "x"), launches: map[string]string{"1": "x"},
			nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeUsed, LaunchID: "x"}},
		},
		"of the same launch, another id": {machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{node("1", "n")}, launches: map[string]string{"1": "x"}},
		"no launch, another id":          {machine: machine("1"), nodes: []*zkmodel.Node{node("1", "n")}},
		"Nodepool's, and the record is of a launch of ours": {
			machine: machine("1", providers.MetaSite, ""), nodes: []*zkmodel.Node{node("1", "n")}, launches: map[string]string{"1": "y"}, want: "remove m of 1",
		},
		"Nodepool's, and the record is of ours, without its machine": {
			machine: machine("1", providers.MetaSite, ""), nodes: []*zkmodel.Node{node("1", "")}, launches: map[string]string{"1": "y"},
		},
		"ours, and the record is Nodepool's": {
			machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{node("1", "n")}, want: "remove m of 1",
		},
		"Nodepool's, and so is the record": {machine: machine("1", providers.MetaSite, ""), nodes: []*zkmodel.Node{node("1", "n")}},
		"of an older release, without one": {machine: machine("1"), nodes: []*zkmodel.Node{node("1", "n")}, launches: map[string]string{"1": "y"}},
		"record cannot be read":            {machine: machine("1", providers.MetaLaunch, "x"), nodes: []*zkmodel.Node{{ID: "1", Broken: errDown}}, launches: map[string]string{"1": "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &leakCloud{tree: tree{nodes: tc.nodes}, machines: []providers.NodeInfo{tc.machine}, launches: tc.launches}
			if got := c.passes(t, 1); got != "" {
				t.Fatalf("%s in the first search", got)
			}
			c.did = nil
			if got := c.passes(t, 2); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			deleted := tc.want != ""
			if deleted != (c.counted == 1) || deleted != strings.Contains(strings.Join(c.did, ", "), "more room") {
				t.Errorf("counted %d, did %q", c.counted, c.did)
			}
			if told := strings.Contains(c.log.String(), "Deleting a machine"); len(c.kept) > 0 && !deleted || told != deleted || strings.Contains(c.log.String(), "Cannot") {
				t.Errorf("is kept as found: %v; told:\n%s", c.kept, c.log)
			}
		})
	}
}

// Catches a search that takes "cannot be read" for "is not there": each of these, in
// the second search, must delete nothing, and have the first one forgotten.
func TestLeaksHeedWhatTheyCannotSee(t *testing.T) {
	for name, broken := range map[string]func(c *leakCloud, err error){
		"the cloud's list fails":   func(c *leakCloud, err error) { c.listing = err },
		"the view does not follow": func(c *leakCloud, err error) { c.barrier = func() error { return err } },
		"a node cannot be read":    func(c *leakCloud, err error) { c.unread = err },
	} {
		t.Run(name, func(t *testing.T) {
			c := &leakCloud{machines: []providers.NodeInfo{machine("1")}}
			l := c.leaks()
			wantNone(t, l.pass(t.Context()))
			broken(c, errDown)
			if err := l.pass(t.Context()); !errors.Is(err, errDown) {
				t.Fatalf("%v", err)
			}
			broken(c, nil)
			wantNone(t, l.pass(t.Context()))
			if strings.Contains(strings.Join(c.did, ", "), "remove") {
				t.Errorf("%q: the search that failed counted as the first", c.did)
			}
			wantNone(t, l.pass(t.Context()))
			if !strings.Contains(strings.Join(c.did, ", "), "remove m of 1") {
				t.Error("not deleted by two searches in a row")
			}
		})
	}
}

// Catches a search without a barrier after the listing: the record was made before the
// machine, but the view shows it late.
func TestLeaksWaitForTheView(t *testing.T) {
	c := &leakCloud{machines: []providers.NodeInfo{machine("1")}}
	c.barrier = func() error {
		c.nodes = []*zkmodel.Node{{ID: "1", State: zkmodel.NodeBuilding}}
		return nil
	}
	if got := c.passes(t, 2); got != "" {
		t.Error(got)
	}
}

// Catches a machine of another launch that is deleted while somebody has the node's
// lock, or one whose failed deletion is never tried again.
func TestLeakOfALockedNodeIsTriedAgain(t *testing.T) {
	c := &leakCloud{
		tree:     tree{nodes: []*zkmodel.Node{{ID: "1", State: zkmodel.NodeReady, ExternalID: zkmodel.TextValue("n")}}},
		machines: []providers.NodeInfo{machine("1", providers.MetaLaunch, "x")}, launches: map[string]string{"1": "y"},
		locked: errDown,
	}
	l := c.leaks()
	for range 3 {
		wantNone(t, l.pass(t.Context()))
	}
	if strings.Contains(strings.Join(c.did, ", "), "remove") || c.counted > 0 {
		t.Fatalf("%q without the lock", c.did)
	}
	c.locked = nil
	wantNone(t, l.pass(t.Context()))
	if !strings.Contains(strings.Join(c.did, ", "), "remove m of 1") {
		t.Errorf("%q", c.did)
	}
}

// Catches a search that stops, or keeps quiet, where part of a provider refuses to be listed: what is leaked in the rest goes, what
// belongs to machines is looked at, and each search tells what it did not see.
func TestWhatCouldBeListedIsSearched(t *testing.T) {
	c := &leakCloud{machines: []providers.NodeInfo{machine("1")}, listing: &providers.PartialError{Err: errDown}}
	l := c.leaks()
	for range 2 {
		if err := l.pass(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("told is %v", err)
		}
	}
	if got, want := strings.Join(c.did, ", "), "clean site, remove m of 1, more room, clean site"; got != want {
		t.Errorf("done is %s, want %s", got, want)
	}
}

// Catches what a search found that is forgotten when the share moves: where a launcher is lost
// every minute leaks would stay for ever. And a second search that comes too soon after that of
// another launcher, or goes by what a search found that failed; a memory that is written though nothing has
// changed; one that cannot be used and keeps our own searches from counting.
func TestLeaksAreRememberedForTheNextWorker(t *testing.T) {
	at := now
	c := &leakCloud{machines: []providers.NodeInfo{machine("1")}}
	worker := func(clock func() time.Time) *Leaks {
		l := c.leaksAt(clock)
		l.age = time.Minute
		return l
	}
	search := func(l *Leaks, deleted int) {
		t.Helper()
		if err := l.pass(t.Context()); err != nil && c.memory == nil && c.listing == nil {
			t.Fatal(err)
		}
		if c.counted != deleted {
			t.Fatalf("%d machines were deleted, want %d", c.counted, deleted)
		}
	}
	clock := func() time.Time { return at }
	search(worker(clock), 0)
	at = at.Add(time.Minute - time.Second)
	second := worker(clock)
	search(second, 0)
	if c.saves != 1 {
		t.Errorf("saved %d times, and there was one change", c.saves)
	}
	at = at.Add(time.Second)
	search(worker(clock), 1)
	if len(c.kept) > 0 {
		t.Errorf("is kept, although it is deleted: %v", c.kept)
	}

	third := worker(clock)
	search(third, 1) // it is there again
	c.listing = errDown
	search(third, 1)
	if c.listing = nil; len(c.kept) > 0 {
		t.Errorf("is kept after a search that failed: %v", c.kept)
	}

	c.memory = errDown
	last := worker(clock)
	search(last, 1)
	at = at.Add(time.Minute)
	search(last, 2)
}

// Catches a share that moves while its worker searches, with which all goes that was found.
func TestLeaksAreKeptByAWorkerThatEnds(t *testing.T) {
	c := &leakCloud{machines: []providers.NodeInfo{machine("1")}}
	wantNone(t, c.leaks().pass(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	c.barrier = func() error { cancel(); return context.Canceled }
	if err := c.leaks().pass(ctx); err == nil || len(c.kept) != 1 {
		t.Errorf("%v; kept %v", err, c.kept)
	}
}
