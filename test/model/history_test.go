package model_test

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"poolkeeper/test/model"
)

// at is an event of a history made by hand.
func at(call, ret int64, client int, op, value, result string) model.Event {
	return model.Event{Client: client, Op: op, Value: value, Call: call, Return: ret, Result: result}
}

// losses is how many sessions are lost in a history: as many faults does it need. With one
// more, a lock that is released may have been another's already.
func losses(history []model.Event) int {
	n := 0
	for _, e := range history {
		if e.Op == "lose" {
			n++
		}
	}
	return n
}

// made is a history made by hand, which may be possible or not.
type made struct {
	possible bool
	history  []model.Event
}

// Both models say the same of histories of a lock, and refuse those that are wrong.
func TestLockHistories(t *testing.T) {
	first := at(0, 1, 0, "acquire", "", "ok")
	seen := slices.Clip([]model.Event{
		first, at(2, model.Never, 0, "write", "x", "unknown"), at(1, 4, 0, "lose", "", "ok"), at(5, 6, 1, "acquire", "", "ok"),
	})
	release, lose, second := at(2, 3, 0, "release", "", "ok"), at(1, 9, 0, "lose", "", "ok"), at(4, 5, 1, "acquire", "", "ok")
	for name, c := range map[string]made{
		"one after the other":    {true, []model.Event{first, release, second}},
		"two holders":            {false, []model.Event{first, at(2, 3, 1, "acquire", "", "ok"), at(4, 5, 0, "release", "", "ok")}},
		"lost while waiting":     {true, []model.Event{first, lose, at(2, 3, 1, "acquire", "", "ok")}},
		"write seen":             {true, append(seen, at(7, 8, 1, "read", "x", "ok"))},
		"write seen and undone":  {false, append(seen, at(7, 8, 1, "read", "x", "ok"), at(9, 10, 1, "read", "", "ok"))},
		"write after loss":       {false, []model.Event{first, lose, at(2, 3, 1, "acquire", "", "ok"), at(4, 5, 0, "write", "x", "ok")}},
		"write without the lock": {false, []model.Event{at(2, 3, 0, "write", "x", "ok")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := porcupine.CheckOperations(model.Locks, model.Operations(c.history)); got != c.possible {
				t.Errorf("porcupine: possible is %t", got)
			}
			if got, err := model.LocksPossible(t.Context(), c.history, losses(c.history)); err != nil || got != c.possible {
				t.Errorf("spin: possible is %t (%v)", got, err)
			}
		})
	}
}

// Both models say the same of histories of claims, and refuse those that are wrong.
func TestClaimHistories(t *testing.T) {
	taken := []model.Event{at(0, 1, 0, "quota", "", "ok"), at(2, 3, 0, "count", "0", "ok"), at(4, 5, 0, "accept", "0", "ok")}
	and := func(more ...model.Event) []model.Event { return append(slices.Clip(taken), more...) }
	for name, c := range map[string]made{
		"served, and its node used":  {true, and(at(6, 7, 0, "finish", "0", "ok"), at(8, 9, 0, "free", "0", "ok"), at(10, 11, 0, "accept", "1", "ok"))},
		"claimed twice":              {false, and(at(6, 7, 0, "yield", "", "ok"), at(8, 9, 1, "quota", "", "ok"), at(10, 11, 1, "accept", "0", "ok"))},
		"more than there is room":    {false, and(at(6, 7, 0, "accept", "1", "ok"))},
		"without the quota":          {false, []model.Event{at(0, 1, 0, "accept", "0", "ok")}},
		"counted too few":            {false, and(at(6, 7, 0, "count", "0", "ok"))},
		"ended twice":                {false, and(at(6, 7, 0, "finish", "0", "ok"), at(8, 9, 0, "finish", "0", "ok"))},
		"taken over":                 {true, and(at(6, 7, 0, "lose", "", "ok"), at(8, 9, 1, "reclaim", "0", "ok"), at(10, 11, 1, "finish", "0", "ok"))},
		"taken over from the living": {false, and(at(8, 9, 1, "reclaim", "0", "ok"), at(10, 11, 1, "finish", "0", "ok"), at(12, 13, 0, "finish", "0", "ok"))},
		"begun again":                {true, and(at(6, 7, 0, "lose", "", "ok"), at(8, 9, 1, "reclaim", "0", "ok"), at(10, 11, 1, "restart", "0", "ok"), at(12, 13, 1, "quota", "", "ok"), at(14, 15, 1, "accept", "1", "ok"))},
		"finished after the loss":    {false, and(at(6, 7, 0, "lose", "", "ok"), at(8, 9, 0, "finish", "0", "ok"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := model.CompleteClaims(c.history)
			if got := porcupine.CheckOperations(model.Claims(1), model.Operations(history)); got != c.possible {
				t.Errorf("porcupine: possible is %t", got)
			}
			if got, err := model.ClaimsPossible(t.Context(), history, 1, losses(history)); err != nil || got != c.possible {
				t.Errorf("spin: possible is %t (%v)", got, err)
			}
		})
	}
}
