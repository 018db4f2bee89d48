package model

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// world is what the clients of a lock share: the lock, and a register to be written under it.
type world struct {
	holder int // client, or nobody
	value  string
}

const nobody = -1

// Locks says what may happen: a free lock may be acquired, and only its holder
// may write. A call whose result is unknown may have happened or not.
//
//nolint:gochecknoglobals // a table of functions
var Locks = modelOf(world{holder: nobody}, func(w world, e Event) (next world, legal bool) {
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
})

// modelOf is the model of a state that each event changes by step.
func modelOf[S comparable](first S, step func(S, Event) (S, bool)) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(state, input, _ any) []any {
			s, e := state.(S), input.(Event)
			next, legal := step(s, e)
			switch {
			case e.Result == "unknown" && legal:
				return []any{s, next}
			case e.Result == "unknown":
				return []any{s}
			case legal:
				return []any{next}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, _ any) string {
			e := input.(Event)
			return fmt.Sprintf("%d: %s %s %s", e.Client, e.Op, e.Value, e.Result)
		},
	}).ToModel()
}

// Operations are the events that may have happened, as porcupine takes them.
func Operations(events []Event) []porcupine.Operation {
	var history []porcupine.Operation
	for _, e := range events {
		if e.Result != "not" {
			history = append(history, porcupine.Operation{ClientId: e.Client, Input: e, Call: e.Call, Return: e.Return})
		}
	}
	return history
}

// Complete pairs calls with their returns. A call without one, of a process that
// was killed, may have happened at any time since; and a lock that it may have
// held was lost at some time.
//
// A process that was paused learns late that it lost the lock: with paused, each
// loss and release may have happened at any time since the lock was acquired.
// Its writes are what must not be believed then.
func Complete(events []Event, paused bool) []Event {
	type call struct {
		client int
		op     string
		at     int64
	}
	open, holds := map[call]Event{}, map[int]Event{}
	var done []Event
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
		e.Return, e.Result = Never, "unknown"
		done = append(done, e)
		if e.Op == "acquire" {
			holds[e.Client] = e
		}
	}
	for client, e := range holds {
		done = append(done, Event{Client: client, Op: "lose", Call: e.Call, Return: Never, Result: "unknown"})
	}
	return done
}
