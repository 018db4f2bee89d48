package recipe_test

import (
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// The clock is measured again where an answer was slow. Catches: servers that were away for a
// moment put the clock wrong by half of that, and with it every age until the next resync.
func TestClockIsMeasuredAgainAfterASlowAnswer(t *testing.T) {
	t.Parallel()
	network := zktest.StartProxy(t, zktest.Shared(t).Addr())
	s := session(t, dial(t, zktest.Root(t), through(network.Addr())))
	must(t, s.EnsurePath(t.Context(), "/clock"))
	const slow = time.Second
	network.CutDown()
	defer time.AfterFunc(slow, network.Heal).Stop()
	ahead, margin, err := recipe.Ahead(t.Context(), s, "/clock", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	// One server, one clock: what is measured is nothing but the mistake.
	if ahead.Abs() > slow/4 || margin > slow/4 {
		t.Errorf("ahead by %s, give or take %s", ahead, margin)
	}
}
