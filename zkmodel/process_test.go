package zkmodel_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
)

// A daemon tells what it does for all a moment after it began or ended with it, several
// at once, and nothing of what was over at once. A share that a new session begins with
// before the last has ended stays, since the first. Catches: a write for each of forty
// shares at the start, and a share that is lost from the record when sessions overlap.
func TestSharesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := zkmodel.NewProcess(nil), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var told [][]string
		var done sync.WaitGroup
		done.Go(func() {
			s.Follow(ctx, func() { told = append(told, slices.Sorted(maps.Keys(s.Held()))) })
		})
		north, south := s.Hold(zkmodel.ProviderDutyPath("north")), s.Hold(zkmodel.ProviderDutyPath("south"))
		<-time.After(10 * time.Second)
		s.Hold(zkmodel.TidyElectionPath)() // over at once
		<-time.After(10 * time.Second)
		again := s.Hold(zkmodel.ProviderDutyPath("north"))
		north()
		north() // once is all that counts
		<-time.After(10 * time.Second)
		if since := s.Held()["duties/providers/north"].Time(); since.Sub(start).Abs() > time.Millisecond {
			t.Errorf("north is held since %s, want %s", since, start)
		}
		south()
		<-time.After(10 * time.Second)
		again()
		<-time.After(10 * time.Second)
		cancel()
		done.Wait()
		want := [][]string{{"duties/providers/north", "duties/providers/south"}, {"duties/providers/north"}, nil}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if s.Held() != nil {
			t.Errorf("held at the end: %v", s.Held())
		}
	})
	var none *zkmodel.Process
	none.Hold("/x")()
	none.Follow(t.Context(), nil)
}
