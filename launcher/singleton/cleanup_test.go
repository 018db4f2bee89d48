package singleton

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// folders is what is below folders, by path: what is in it, if anything.
type folders struct {
	tree
	names   map[string][]string // by folder
	full    map[string]bool     // lock folders with a contender
	changed map[string]bool     // records that were changed meanwhile
	proven  map[string]bool     // records that are gone for certain; nil is all that the view lacks
	fail    error
	batches []int
}

func (f *folders) Children(_ context.Context, path string) ([]string, error) {
	names, there := f.names[path]
	if !there {
		return nil, recipe.ErrNoNode
	}
	return names, nil
}

func (f *folders) AllAbsent(_ context.Context, paths ...string) (map[string]zkmodel.Proof, error) {
	proofs := map[string]zkmodel.Proof{}
	for _, p := range paths {
		if f.proven == nil || f.proven[p] {
			proofs[p] = zkmodel.Proof{}
		}
	}
	return proofs, f.fail
}

func (f *folders) Remove(_ context.Context, paths ...string) error {
	f.batches = append(f.batches, len(paths))
	for _, p := range paths {
		if f.full[p] {
			return recipe.ErrNotEmpty
		}
	}
	for _, p := range paths {
		f.names[path.Dir(p)] = slices.DeleteFunc(f.names[path.Dir(p)], func(n string) bool { return n == path.Base(p) })
	}
	return nil
}

func (f *folders) RemoveVersion(_ context.Context, p string, _ int32) error {
	if f.changed[p] {
		return recipe.ErrVersion
	}
	f.requests = slices.DeleteFunc(f.requests, func(r *zkmodel.Request) bool { return r.Path() == p })
	return nil
}

// Catches folders that are removed of what is there still, or is not proven to be gone,
// and one lock with a contender that keeps all others from going.
func TestCleanupRemovesWhatIsLeftBehind(t *testing.T) {
	f := &folders{
		tree: tree{requests: []*zkmodel.Request{{ID: "here"}}, nodes: []*zkmodel.Node{{ID: "here"}}},
		names: map[string][]string{
			zkmodel.LocksRoot: {"gone", "here", "held", "unproven"}, zkmodel.LaunchesRoot: {"gone", "here", "unproven"},
		},
		full: map[string]bool{zkmodel.LocksRoot + "/held": true},
		proven: map[string]bool{
			zkmodel.RequestPath("gone"): true, zkmodel.RequestPath("held"): true, zkmodel.NodePath("gone"): true,
		},
	}
	wantNone(t, NewCleanup(f, f, f).Pass(t.Context()))
	for folder, want := range map[string]string{zkmodel.LocksRoot: "here held unproven", zkmodel.LaunchesRoot: "here unproven"} {
		if got := strings.Join(f.names[folder], " "); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
}

// Catches one transaction for all that gathered, which the server refuses when it is
// too large, and a removal on a proof that failed.
func TestCleanupRemovesInBatches(t *testing.T) {
	f := &folders{names: map[string][]string{}}
	for i := range 250 {
		f.names[zkmodel.LocksRoot] = append(f.names[zkmodel.LocksRoot], fmt.Sprint(i))
	}
	f.fail = errDown
	if err := NewCleanup(f, f, f).Pass(t.Context()); err == nil || len(f.batches) > 0 {
		t.Errorf("%v, removed %v without a proof", err, f.batches)
	}
	f.fail = nil
	wantNone(t, NewCleanup(f, f, f).Pass(t.Context()))
	if len(f.names[zkmodel.LocksRoot]) > 0 || slices.Max(f.batches) > locksAtOnce || len(f.batches) != 3 {
		t.Errorf("%v", f.batches)
	}
}

// Catches requests for stock that are dropped although somebody keeps the label, works
// on them, changed them, or a Nodepool made them; and those that nobody ever drops.
func TestCleanupDropsStockThatNobodyWants(t *testing.T) {
	nodepools := stockRequest("nodepool", "left", zkmodel.RequestRequested)
	nodepools.RequestorData = zkmodel.Value{}
	f := &folders{
		tree: tree{requests: []*zkmodel.Request{
			stockRequest("waits", "left", zkmodel.RequestRequested), stockRequest("kept", "kept", zkmodel.RequestRequested),
			stockRequest("works", "left", zkmodel.RequestPending), stockRequest("changed", "left", zkmodel.RequestRequested),
			stockRequest("served", "gone", zkmodel.RequestFulfilled), nodepools,
			{ID: "zuul", NodeTypes: zkmodel.Strings{"left"}, Requestor: "zuul"},
		}},
		names: map[string][]string{
			zkmodel.LabelDutyPath("kept") + "/members": {"host"}, zkmodel.LabelDutyPath("left") + "/members": {},
		},
		changed: map[string]bool{zkmodel.RequestPath("changed"): true},
	}
	wantNone(t, NewCleanup(f, f, f).Pass(t.Context()))
	left := map[string]bool{}
	for _, r := range f.requests {
		left[r.ID] = true
	}
	if got := strings.Join(slices.Sorted(maps.Keys(left)), " "); got != "changed kept nodepool works zuul" {
		t.Errorf("left: %s", got)
	}
}

// Catches requests for backing nodes that go while their launcher restarts, or since a mistake has left their
// provider out of the configuration; and those of a provider that is gone, which nobody ever drops.
func TestCleanupDropsRequestsForBackingNodes(t *testing.T) {
	backing := func(id, provider string) *zkmodel.Request {
		return &zkmodel.Request{
			ID: id, State: zkmodel.RequestRequested, Requestor: zkmodel.BackingOwner(provider), RequestorData: zkmodel.BackingMarkOf(id),
		}
	}
	members := zkmodel.ProviderDutyPath("restarts") + "/members"
	f := &folders{
		tree: tree{requests: []*zkmodel.Request{
			backing("gone", "gone"), backing("frozen", "frozen"), backing("restarts", "restarts"), backing("kept", "kept"),
		}},
		names: map[string][]string{zkmodel.ProviderDutyPath("kept") + "/members": {"host"}, members: {}},
	}
	c := NewCleanup(f, f, f)
	c.Frozen = func(provider string) string {
		if provider == "frozen" {
			return "a mistake"
		}
		return ""
	}
	for _, pass := range []struct{ members, left string }{
		{"", "frozen gone kept restarts"}, {"host", "frozen kept restarts"}, {"", "frozen kept restarts"},
	} {
		f.names[members] = strings.Fields(pass.members)
		wantNone(t, c.Pass(t.Context()))
		var left []string
		for _, r := range f.requests {
			left = append(left, r.ID)
		}
		if slices.Sort(left); strings.Join(left, " ") != pass.left {
			t.Errorf("left: %s, want %s", left, pass.left)
		}
	}
}
