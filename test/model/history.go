package model

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The operations as the models in Promela number their calls; the return is one more.
//
//nolint:gochecknoglobals // tables
var (
	lockOps  = []string{"acquire", "write", "read", "release", "lose"}
	claimOps = []string{"quota", "count", "accept", "finish", "reclaim", "restart", "yield", "free", "lose"}
)

// LocksPossible reports whether a history of a lock is a run of lock.pml with so many faults at most.
func LocksPossible(ctx context.Context, events []Event, faults int) (bool, error) {
	values := []string{""}
	text, clients := promela(events, lockOps, 16, func(value string) int {
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
		return slices.Index(values, value)
	})
	rounds := make([]int, clients)
	for _, e := range events {
		if e.Op == "acquire" {
			rounds[e.Client]++
		}
	}
	return possible(ctx, Run{Model: "lock", History: text, Defines: []string{
		fmt.Sprintf("N=%d", max(clients, 3)), fmt.Sprintf("ROUNDS=%d", slices.Max(rounds)+1), fmt.Sprintf("FAULTS=%d", faults),
	}})
}

// ClaimsPossible reports whether a history of claims is a run of claim.pml with so much room and
// so many sessions lost at most.
func ClaimsPossible(ctx context.Context, events []Event, room, faults int) (bool, error) {
	text, clients := promela(events, claimOps, 32, func(value string) int {
		n, _ := strconv.Atoi(value)
		return n
	})
	return possible(ctx, Run{Model: "claim", History: text, Defines: []string{
		fmt.Sprintf("N=%d", max(clients, 3)), fmt.Sprintf("REQUESTS=%d", MostRequests), fmt.Sprintf("ROOM=%d", room), fmt.Sprintf("FAULTS=%d", faults),
	}})
}

// possible explores a model that is told to do what a history says: it is wrong, by an assertion,
// exactly when it comes to the end.
func possible(ctx context.Context, r Run) (bool, error) {
	r.Fast = true
	out, err := Explore(ctx, r)
	if err != nil {
		return false, err
	}
	return strings.HasPrefix(out.Wrong, "assertion violated"), nil
}

// promela is a history as the models include it, and how many clients there are.
func promela(events []Event, ops []string, wide int, number func(value string) int) (text string, clients int) {
	list := moments(events)
	which, value := strings.Builder{}, strings.Builder{}
	for i, m := range list {
		clients = max(clients, m.event.Client+1)
		code := m.event.Client*wide + 2*slices.Index(ops, m.event.Op)
		if m.returned {
			code++
		}
		fmt.Fprintf(&which, "(now == %d -> %d : ", i, code)
		fmt.Fprintf(&value, "(now == %d -> %d : ", i, number(m.event.Value))
	}
	end := "255" + strings.Repeat(")", len(list))
	return fmt.Sprintf("#define EVENTS %d\n#define EVENT %s%s\n#define VALUE %s%s\n", len(list), &which, end, &value, end), clients
}
