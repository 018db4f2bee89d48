package stage

import (
	"testing"
	"testing/synctest"
	"time"
)

// Mistake: what is done often, but over a long time or of several locks, is taken for one lock taken too often; or
// that is not seen.
func TestRestless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Restless
		for range 10 * MostTries {
			<-time.After(Watched/MostTries + time.Millisecond)
			if r.Again("a", "slow") || r.Again("b", "slow") {
				t.Fatal("no more than MostTries within Watched is too often")
			}
		}
		for n := range MostTries {
			if r.Again("a", "fast") || r.Again("a", "other") {
				t.Fatalf("too often after %d", n+1)
			}
		}
		if !r.Again("a", "fast") {
			t.Error("one more is not seen")
		}
		<-time.After(Watched + 1)
		if r.Again("a", "fast") {
			t.Error("it is not forgotten")
		}
	})
}
