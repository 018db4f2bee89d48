package zkmodel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// backings are trees of a test: sessions of two launchers.
func backings(t *testing.T) (one, two *zkmodel.Store) {
	t.Helper()
	root := zktest.Root(t)
	dial := func() *zkmodel.Store {
		client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		session, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return zkmodel.NewStore(session, nil)
	}
	one, two = dial(), dial()
	if err := one.Session().EnsurePath(t.Context(), zkmodel.NodesRoot); err != nil {
		t.Fatal(err)
	}
	return one, two
}

// readyNode makes one that a request was given.
func readyNode(t *testing.T, st *zkmodel.Store, request string) *zkmodel.Node {
	t.Helper()
	n := &zkmodel.Node{Provider: "cloud", Type: zkmodel.Strings{"large"}, AllocatedTo: request}
	lock, err := st.CreateNode(t.Context(), n)
	for _, to := range []zkmodel.NodeState{zkmodel.NodeBuilding, zkmodel.NodeReady} {
		if err == nil {
			err = zkmodel.Move(n, to, zkmodel.ByUs, zkmodel.EpochOf(time.Now()))
		}
	}
	if err == nil {
		err = st.SaveNode(t.Context(), lock, n)
	}
	if err == nil {
		err = lock.Release(t.Context())
	}
	if err == nil {
		n, err = st.Node(t.Context(), n.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func record(t *testing.T, st *zkmodel.Store, provider, id string) *zkmodel.Backing {
	t.Helper()
	data, stat, err := st.Session().Get(t.Context(), zkmodel.BackingFolder(provider)+"/"+id)
	if err != nil {
		t.Fatal(err)
	}
	b, err := zkmodel.DecodeBacking(provider, id, data, stat)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func made(t *testing.T, st *zkmodel.Store, provider, id string) *zkmodel.Backing {
	t.Helper()
	b := &zkmodel.Backing{
		Provider: provider, ID: id, Label: "small", Wants: "large", Launched: 1700000000.5,
		Slots: []zkmodel.BackingSlot{{ExternalID: "7", Node: "7", Metadata: map[string]string{"k": "v"}}, {}},
	}
	if err := st.CreateBacking(t.Context(), b, 0); err != nil {
		t.Fatal(err)
	}
	return record(t, st, provider, id)
}

// Mistake: two launchers that both find no backing node, and both ask for one.
func TestBackingNodeIsMadeOnce(t *testing.T) {
	t.Parallel()
	one, two := backings(t)
	b := made(t, one, "slots", "a")
	if b.Idle() || b.Slots[0].Metadata["k"] != "v" || b.Launched != 1700000000.5 {
		t.Errorf("read back as %+v", b)
	}
	again := &zkmodel.Backing{Provider: "slots", ID: "b", Label: "small", Slots: make([]zkmodel.BackingSlot, 1)}
	if err := two.CreateBacking(t.Context(), again, 0); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("beside one that it has not seen: %v", err)
	}
	made(t, two, "bunks", "b") // another provider's
	stale := *b
	b.Failed = "no"
	if err := one.SaveBacking(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := two.SaveBacking(t.Context(), &stale); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("over what another wrote: %v", err)
	}
	if err := two.DropBacking(t.Context(), &stale, ""); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("away from under what another wrote: %v", err)
	}
	if _, err := zkmodel.DecodeBacking("slots", "x", []byte("{}"), recipe.Stat{}); !errors.Is(err, zkmodel.ErrUndecodable) {
		t.Errorf("an empty record: %v", err)
	}
}

// Mistake: a node that is locked for nobody, or in use without a lock; one that is taken though
// another has it; a slot given on a node that goes.
func TestBackingNodeIsTakenAndGivenBackAtOnce(t *testing.T) {
	t.Parallel()
	one, two := backings(t)
	ctx := t.Context()
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"large"}, RequestorData: zkmodel.BackingMarkOf("a")}
	if err := one.CreateRequest(ctx, "100", r); err != nil || zkmodel.BackingOf(r) != "a" {
		t.Fatal(err, zkmodel.BackingOf(r))
	}
	n, b := readyNode(t, one, r.ID), made(t, one, "slots", "a")
	lock, _, err := two.LockNode(ctx, n.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.TakeBacking(ctx, b, n, r.ID); !errors.Is(err, zkmodel.ErrBusy) {
		t.Errorf("one that is locked: %v", err)
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	b = record(t, one, "slots", "a")
	if err := one.TakeBacking(ctx, b, n, r.ID); err != nil {
		t.Fatal(err)
	}
	late, stale := readyNodeOf(t, two, n.ID), record(t, two, "slots", "a")
	said, backs := late.Backs()
	if !backs || late.State != zkmodel.NodeInUse || said.Slots != 2 || said.Failed || said.Launched != 1700000000.5 || late.BacksFor() != "slots" || stale.Node != n.ID {
		t.Errorf("taken over it is %+v, says %+v, record %+v", late, said, stale)
	}
	if _, err := one.Request(ctx, r.ID); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("its request: %v", err)
	}
	if _, _, err := two.LockNode(ctx, n.ID, ""); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("locked by another: %v", err)
	}
	other, err := two.BackingLock(ctx, "bunks", n.ID)
	if err != nil || other != "" {
		t.Errorf("another provider has it: %q %v", other, err)
	}
	contender, err := two.BackingLock(ctx, "slots", n.ID)
	if err != nil || contender == "" {
		t.Fatal(contender, err)
	}
	// A slot is given while it goes.
	busy := record(t, one, "slots", "a")
	busy.Slots[1] = zkmodel.BackingSlot{ExternalID: "8", Node: "8"}
	if err := one.SaveBacking(ctx, busy); err != nil {
		t.Fatal(err)
	}
	if err := two.GiveBacking(ctx, stale, late, contender); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("given back under a node: %v", err)
	}
	failing := record(t, two, "slots", "a")
	failing.Failed = "it burns"
	now := readyNodeOf(t, two, n.ID)
	if err := two.MarkBacking(ctx, failing, now, contender); err != nil {
		t.Fatal(err)
	}
	if said, _ := readyNodeOf(t, one, n.ID).Backs(); !said.Failed {
		t.Errorf("failed, it says %+v", said)
	}
	if err := two.GiveBacking(ctx, record(t, two, "slots", "a"), readyNodeOf(t, two, n.ID), contender); err != nil {
		t.Fatal(err)
	}
	free, _, err := one.LockNode(ctx, n.ID, "")
	if err != nil || readyNodeOf(t, one, n.ID).State != zkmodel.NodeUsed {
		t.Errorf("given back: %v", err)
	} else if err := free.Release(ctx); err != nil {
		t.Error(err)
	}
}

func readyNodeOf(t *testing.T, st *zkmodel.Store, id string) *zkmodel.Node {
	t.Helper()
	n, err := st.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Mistake: erasing a provider leaves nodes of others locked for ever, or takes those of another
// provider of slots.
func TestEraseGivesBackingNodesBack(t *testing.T) {
	t.Parallel()
	one, _ := backings(t)
	ctx := t.Context()
	nodes := map[string]*zkmodel.Node{}
	for i, provider := range []string{"slots", "bunks"} {
		nodes[provider] = readyNode(t, one, fmt.Sprint(i))
		if err := one.TakeBacking(ctx, made(t, one, provider, "a"), nodes[provider], ""); err != nil {
			t.Fatal(err)
		}
	}
	h, err := one.Holdings(ctx, "slots")
	if err != nil || h.Empty() || len(h.Backing) != 1 {
		t.Fatalf("%+v %v", h, err)
	}
	if err := one.Erase(ctx, h); err != nil {
		t.Fatal(err)
	}
	if n := readyNodeOf(t, one, nodes["slots"].ID); n.State != zkmodel.NodeUsed {
		t.Errorf("its backing node is %s", n.State)
	}
	if n := readyNodeOf(t, one, nodes["bunks"].ID); n.State != zkmodel.NodeInUse {
		t.Errorf("another's is %s", n.State)
	}
	if _, there, err := one.Session().Exists(context.WithoutCancel(ctx), zkmodel.BackingFolder("slots")); err != nil || there {
		t.Errorf("what was known is there: %t %v", there, err)
	}
}

func TestWhatIsNoBackingNode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `"text"`, `{"zuul_system": "z"}`, `"{\"owner\": \"zuul\", \"slots\": 2}"`, `"{"`, `[1]`} {
		n := &zkmodel.Node{UserData: zkmodel.JSONValue([]byte(text))}
		if _, backs := n.Backs(); backs || n.BacksFor() != "" {
			t.Errorf("%s backs %s", text, n.BacksFor())
		}
	}
	for _, text := range []string{"", "3", `{"slot": 1}`, `{"backing_node": 3}`, `{"backing_node": null}`} {
		n := &zkmodel.Node{DriverData: zkmodel.JSONValue([]byte(text))}
		if on, is := n.OnSlot(); is {
			t.Errorf("%s is on %+v", text, on)
		}
	}
	pools := []*zkmodel.Component{
		{ProviderName: "slots", Hostname: "ours", Knows: zkmodel.Strings{zkmodel.KnowsVerdicts}}, {ProviderName: "bunks", Hostname: "nodepool"},
	}
	if zkmodel.BackingRival(pools, "slots") != "" || zkmodel.BackingRival(pools, "bunks") == "" {
		t.Error("a rival is not Nodepool's pool of that provider")
	}
}
