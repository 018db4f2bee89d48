package recipe_test

import (
	"cmp"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"poolkeeper/test/model"
)

// event is one call that a client made, or its return, as a child process writes it.
type event = model.Event

// check fails the test if events cannot have happened in a correct world. A
// process that was paused learns late that it lost the lock: with paused, each
// loss and release may have happened at any time since the lock was acquired.
// Its writes are what must not be believed then.
func check(t *testing.T, events []event, paused bool) {
	t.Helper()
	complete := model.Complete(events, paused)
	history := model.Operations(complete)
	count := map[string]int{}
	for _, e := range complete {
		count[e.Op+" "+e.Result]++
	}
	t.Logf("history: %v", count)
	for _, op := range []string{"acquire ok", "write ok", "read ok"} {
		if count[op] == 0 {
			t.Errorf("no %q in the history", op)
		}
	}
	switch result := porcupine.CheckOperationsTimeout(model.Locks, history, time.Minute); result {
	case porcupine.Illegal:
		t.Errorf("the history of %d calls is impossible", len(history))
		blame(t, history)
	case porcupine.Unknown:
		t.Error("the history could not be checked in a minute")
	}
	const first = 24 // as much as is explored in a moment
	head := model.Head(model.Complete(events, false), first)
	// Mostly two faults explain it. One killed server is a fault for each client, so there may be more.
	for _, faults := range []int{2, 4, 6} {
		possible, err := model.LocksPossible(t.Context(), head, faults)
		switch {
		case err != nil && faults > 2: // too much to explore: porcupine has judged
			t.Logf("spin, with %d faults: %v", faults, err)
			return
		case err != nil:
			t.Fatalf("spin: %v", err)
		case possible:
			return
		}
	}
	t.Error("spin: what has happened first is impossible")
}

// blame shows where the longest possible part of history ends: what has not
// returned by then may have happened or not.
func blame(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	until := func(n int) []porcupine.Operation {
		var part []porcupine.Operation
		for _, op := range history {
			if e := op.Input.(event); op.Call > history[n].Return {
				continue
			} else if op.Return > history[n].Return {
				e.Result, op.Return = "unknown", model.Never
				op.Input = e
			}
			part = append(part, op)
		}
		return part
	}
	n := sort.Search(len(history), func(n int) bool {
		return porcupine.CheckOperationsTimeout(model.Locks, until(n), time.Minute) == porcupine.Illegal
	})
	for i, op := range history[max(0, n-15):min(n+3, len(history))] {
		t.Logf("%d: %+v", max(0, n-15)+i, op.Input)
	}
}
