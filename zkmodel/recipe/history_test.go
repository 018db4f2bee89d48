package recipe_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// event is one call that a client made, or its return, as a child process writes it.
type event struct {
	Client int
	Op     string // acquire, release, lose, read, write
	Value  string // that was read or written
	Call   int64  // nanoseconds
	Return int64  // 0 in the line that tells of the call alone
	Result string // ok, not (it has surely not happened), or unknown
}

// world is what the clients share: a lock, and a register to be written under it.
type world struct {
	holder int // client, or nobody
	value  string
}

const nobody = -1

// model says what may happen: a free lock may be acquired, and only its holder
// may write. A call whose result is unknown may have happened or not.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{world{holder: nobody}} },
	Step: func(state, input, _ any) []any {
		w, e := state.(world), input.(event)
		next, legal := step(w, e)
		switch {
		case e.Result == "unknown" && legal:
			return []any{w, next}
		case e.Result == "unknown":
			return []any{w}
		case legal:
			return []any{next}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		e := input.(event)
		return fmt.Sprintf("%d: %s %s %s", e.Client, e.Op, e.Value, e.Result)
	},
}).ToModel()

func step(w world, e event) (next world, legal bool) {
	mine := w.holder == e.Client
	switch e.Op {
	case "acquire":
		return world{e.Client, w.value}, w.holder == nobody
	case "release", "lose":
		return world{nobody, w.value}, mine
	case "read":
		return w, w.value == e.Value
	case "write":
		return world{w.holder, e.Value}, mine
	}
	return w, false
}

// check fails the test if events cannot have happened in a correct world. A
// process that was paused learns late that it lost the lock: with paused, each
// loss and release may have happened at any time since the lock was acquired.
// Its writes are what must not be believed then.
func check(t *testing.T, events []event, paused bool) {
	t.Helper()
	var history []porcupine.Operation
	count := map[string]int{}
	for _, e := range complete(events, paused) {
		count[e.Op+" "+e.Result]++
		if e.Result != "not" {
			history = append(history, porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Return})
		}
	}
	t.Logf("history: %v", count)
	for _, op := range []string{"acquire ok", "write ok", "read ok"} {
		if count[op] == 0 {
			t.Errorf("no %q in the history", op)
		}
	}
	switch result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result {
	case porcupine.Illegal:
		t.Errorf("the history of %d calls is impossible", len(history))
		blame(t, history)
	case porcupine.Unknown:
		t.Error("the history could not be checked in a minute")
	}
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
				e.Result, op.Input, op.Return = "unknown", e, math.MaxInt64
			}
			part = append(part, op)
		}
		return part
	}
	n := sort.Search(len(history), func(n int) bool {
		return porcupine.CheckOperationsTimeout(model, until(n), time.Minute) == porcupine.Illegal
	})
	for i, op := range history[max(0, n-15):min(n+3, len(history))] {
		t.Logf("%d: %+v", max(0, n-15)+i, op.Input)
	}
}

// complete pairs calls with their returns. A call without one, of a process that
// was killed, may have happened at any time since; and a lock that it may have
// held was lost at some time.
func complete(events []event, paused bool) []event {
	type call struct {
		client int
		op     string
		at     int64
	}
	open, holds := map[call]event{}, map[int]event{}
	var done []event
	for _, e := range events {
		key := call{e.Client, e.Op, e.Call}
		if e.Return == 0 {
			open[key] = e
			continue
		}
		delete(open, key)
		done = append(done, e)
		switch {
		case e.Op == "acquire" && e.Result == "ok":
			holds[e.Client] = e
		case e.Op == "release" || e.Op == "lose":
			if paused || e.Op == "lose" {
				done[len(done)-1].Call = holds[e.Client].Call
			}
			delete(holds, e.Client)
		}
	}
	for _, e := range open {
		e.Return, e.Result = math.MaxInt64, "unknown"
		done = append(done, e)
		if e.Op == "acquire" {
			holds[e.Client] = e
		}
	}
	for client, e := range holds {
		done = append(done, event{Client: client, Op: "lose", Call: e.Call, Return: math.MaxInt64, Result: "unknown"})
	}
	return done
}

// TestHistoryChecker makes sure that the checker can fail.
func TestHistoryChecker(t *testing.T) {
	t.Parallel()
	at := func(call, ret int64, client int, op, value, result string) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Call: call, Return: ret, Input: event{Client: client, Op: op, Value: value, Result: result}}
	}
	first := at(0, 1, 0, "acquire", "", "ok")
	for name, c := range map[string]struct {
		possible bool
		history  []porcupine.Operation
	}{
		"one after the other":   {true, []porcupine.Operation{first, at(2, 3, 0, "release", "", "ok"), at(4, 5, 1, "acquire", "", "ok")}},
		"two holders":           {false, []porcupine.Operation{first, at(2, 3, 1, "acquire", "", "ok"), at(4, 5, 0, "release", "", "ok")}},
		"lost while waiting":    {true, []porcupine.Operation{first, at(1, 9, 0, "lose", "", "ok"), at(2, 3, 1, "acquire", "", "ok")}},
		"write after loss":      {false, []porcupine.Operation{first, at(1, 9, 0, "lose", "", "ok"), at(2, 3, 1, "acquire", "", "ok"), at(4, 5, 0, "write", "x", "ok")}},
		"write lost":            {true, []porcupine.Operation{first, at(2, 99, 0, "write", "x", "unknown"), at(3, 4, 1, "read", "", "ok")}},
		"write seen":            {true, []porcupine.Operation{first, at(2, 99, 0, "write", "x", "unknown"), at(3, 4, 1, "read", "x", "ok")}},
		"write seen and undone": {false, []porcupine.Operation{first, at(2, 99, 0, "write", "x", "unknown"), at(3, 4, 1, "read", "x", "ok"), at(5, 6, 1, "read", "", "ok")}},
	} {
		if got := porcupine.CheckOperations(model, c.history); got != c.possible {
			t.Errorf("%s: possible is %v", name, got)
		}
	}
}
