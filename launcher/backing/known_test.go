package backing_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: two launchers that both found no room, and both ask for a backing node, where one
// would do; the second has even seen the first one's by the time at which it adds its own.
func TestOneIsAddedToWhatWasListed(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	list, revision := one.listed()
	if len(list) != 0 {
		t.Fatalf("at first there are %+v", list)
	}
	other.add("7")
	if seen, _ := one.listed(); len(seen) != 1 {
		t.Fatalf("added, there are %+v", seen)
	}
	if err := one.Save(t.Context(), added("8", revision)); !errors.Is(err, providers.ErrChanged) {
		t.Errorf("added to a list that is outdated: %v", err)
	}
	if list := one.records(); len(list) != 1 || list[0].Slots[0].Node != "7" {
		t.Errorf("records %+v", list)
	}
	one.add("8") // after a look
	if list := other.records(); len(list) != 2 {
		t.Errorf("records %+v", list)
	}
}

// Mistake: a list beside a revision that is newer than it is, as what tells of the folder comes
// before what tells of its children: two then add one because of the same list.
func TestListIsAsNewAsItsRevision(t *testing.T) {
	t.Parallel()
	const rounds = 60
	one, other := two(t)
	var adding sync.WaitGroup
	for _, m := range []*member{one, other} {
		adding.Go(func() {
			for range rounds {
				list, revision, err := m.List(t.Context())
				if err == nil {
					err = m.Save(t.Context(), added(strconv.Itoa(len(list)), revision))
				}
				if err != nil && !errors.Is(err, providers.ErrChanged) {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	seen := map[string]bool{}
	for _, b := range one.records() {
		if by := b.Slots[0].Node; seen[by] {
			t.Errorf("two were added to a list of %s", by)
		} else {
			seen[by] = true
		}
	}
}

// Mistake: a write over what another has written since the list, as another's revision, or none,
// is taken for that of the list.
func TestWritesCarryTheVersionListed(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	one.add("7")
	list, _ := one.listed()
	theirs, _ := other.listed()
	theirs[0].Failed = "it burns"
	if err := other.Save(t.Context(), theirs[0]); err != nil {
		t.Fatal(err)
	}
	list[0].Slots[1] = providers.SlotUse{ExternalID: "8", Node: "8"}
	if err := one.Save(t.Context(), list[0]); !errors.Is(err, providers.ErrChanged) {
		t.Errorf("over what another wrote: %v", err)
	}
	for _, id := range []string{"", list[0].ID} {
		unlisted := added("9", nil)
		unlisted.ID = id
		if err := one.Save(t.Context(), unlisted); !errors.Is(err, providers.ErrInvalid) {
			t.Errorf("%q without a revision: %v", id, err)
		}
	}
	if now := one.records(); len(now) != 1 || now[0].Failed != "it burns" || now[0].Slots[1].Node != "" {
		t.Errorf("records %+v", now)
	}
}

// Mistake: a slot that is given to another while the record of a node of Nodepool's that goes says
// that it has it: Nodepool's launcher ends where two say so.
func TestSlotIsUsedUntilTheRecordIsGone(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	n := other.ready()
	other.add("7")
	if err := other.Store.TakeBacking(t.Context(), other.records()[0], n, ""); err != nil {
		t.Fatal(err)
	}
	for state, used := range map[zkmodel.NodeState]bool{zkmodel.NodeUsed: true, zkmodel.NodeFailed: true, zkmodel.NodeDeleting: true, zkmodel.NodeBuilding: false} {
		child := &zkmodel.Node{Provider: slots, Type: zkmodel.Strings{"slot"}, State: state}
		child.DriverData = zkmodel.SlotData{Backing: n.ID, Slot: 1, Node: "8"}.Value()
		data, err := child.Encode()
		var at string
		if err == nil {
			at, err = other.Store.Session().Create(t.Context(), zkmodel.NodesRoot+"/", data, recipe.Sequential)
		}
		if err != nil {
			t.Fatal(err)
		}
		if list, _ := one.listed(); len(list) != 1 || list[0].Slots[1].Recorded != used {
			t.Errorf("below a node that is %s: %+v", state, list)
		}
		if err := other.Store.Session().DeleteTree(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if list, _ := one.listed(); len(list) != 1 || !list[0].Slots[1].Free() {
			t.Errorf("after it: %+v", list)
		}
	}
}

// Mistake: jobs that get slots, one after the other, on a machine that its cloud has taken back.
func TestMachineThatWasTakenBackHasFailed(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	n := other.ready()
	other.add("7")
	if err := other.Store.TakeBacking(t.Context(), other.records()[0], n, ""); err != nil {
		t.Fatal(err)
	}
	if list, _ := one.listed(); len(list) != 1 || list[0].Failed != "" {
		t.Errorf("before it: %+v", list)
	}
	one.Interrupted = func(of *zkmodel.Node) string {
		if of.ID != n.ID {
			return ""
		}
		return "the cloud needed it"
	}
	if list, _ := one.listed(); len(list) != 1 || list[0].Failed != "the cloud needed it" {
		t.Errorf("after it: %+v", list)
	}
}
