package model_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/model"
)

// explore explores a model.
func explore(t *testing.T, r model.Run) *model.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	out, err := model.Explore(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// large is set by `make model`: larger bounds, minutes instead of seconds.
var large = os.Getenv("MODEL") == "large"

// bound is what a model is explored with.
type bound struct {
	large   bool
	model   string
	defines string
	atLeast int // states: a model that does nothing is right, too
}

// Every state of the models is right.
func TestModels(t *testing.T) {
	for _, b := range []bound{
		{false, "lease", "", 10_000},
		{false, "lock", "", 1_000_000},
		{false, "claim", "UNCOUNTED REQUESTS=1 FAULTS=2", 500_000},
		{false, "claim", "N=2 FAULTS=2", 300_000},
		{true, "lease", "TICKS=6 FLYING=4", 100_000},
		{true, "lock", "ROUNDS=2 FAULTS=2", 5_000_000},
		{true, "claim", "REQUESTS=1 FAULTS=2", 500_000},
		{true, "claim", "FAULTS=1", 5_000_000},
		{true, "claim", "N=2 FAULTS=3 ROOM=2", 1_000_000},
	} {
		if b.large && !large {
			continue
		}
		t.Run(b.model+" "+b.defines, func(t *testing.T) {
			t.Parallel()
			out := explore(t, model.Run{Model: b.model, Defines: strings.Fields(b.defines), Trail: true})
			if out.Wrong != "" {
				t.Errorf("%s\n%s", out.Wrong, out.Trail)
			} else if out.States < b.atLeast {
				t.Errorf("only %d states: does the model do anything?", out.States)
			}
			t.Logf("%d states", out.States)
		})
	}
}

// Each defect that is planted in a model is found. Without one of these, a model that
// allows everything would pass.
func TestPlantedDefects(t *testing.T) {
	const deadlock, judged = "invalid end state", "assertion violated"
	for _, c := range []struct{ model, bug, wrong string }{
		{"lease", "LATE", judged},                        // the lease ends a moment late
		{"lease", "SINCE_ANSWER", judged},                // it counts from the answer, not from the request
		{"lease", "EVENTS", judged},                      // watch events count as answers
		{"lock", "LEASE", judged},                        // the work goes on when the lease is over
		{"lock", "FENCE", judged},                        // a write without a check of the contender
		{"lock", "KEPT", judged},                         // a lock is held on in the next session
		{"lock", "STAYS", deadlock},                      // contenders outlive their session
		{"lock", "EARLY", judged},                        // the lock is released before the work ends
		{"lock", "LOOK", judged},                         // who was before us is gone, so the lock is ours
		{"lock", "ORPHAN", deadlock},                     // a lost answer to a create is taken for its failure
		{"lock", "STALE", deadlock},                      // the own contender is looked for on a server that lags
		{"claim UNCOUNTED REQUESTS=1", "CLAIM", judged},  // a request is claimed as it was seen
		{"claim UNCOUNTED REQUESTS=1", "REREAD", judged}, // taken over without reading it again
		{"claim N=2", "QUOTA", judged},                   // room is taken without the quota's fence
		{"claim N=2", "BARRIER", judged},                 // counted before all is seen
		{"claim N=2", "COUNT", judged},                   // counted on after a lost answer: a defect that we had
	} {
		t.Run(c.model+" "+c.bug, func(t *testing.T) {
			t.Parallel()
			name, defines, _ := strings.Cut(c.model, " ")
			out := explore(t, model.Run{Model: name, Defines: append(strings.Fields(defines), "BUG_"+c.bug), Fast: true})
			if !strings.HasPrefix(out.Wrong, c.wrong) {
				t.Errorf("the planted defect is not found: %q after %d states", out.Wrong, out.States)
			}
		})
	}
}
