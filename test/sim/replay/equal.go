package replay

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// equalRuns is how often Equal runs a seed.
const equalRuns = 3

// Equal runs the world's fixed seeds several times each, and demands that the timelines of a seed
// are equal.
func (s *Sealed) Equal(ctx context.Context, to io.Writer) error {
	began := time.Now()
	var hours float64
	found := make([][equalRuns]Result, s.fixed)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for seed := range found {
		for i := range equalRuns {
			group.Go(func() (err error) {
				found[seed][i], err = s.Run(ctx, Run{Seed: uint64(seed) + 1})
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for seed, runs := range found {
		for _, r := range runs {
			last, ok := r.Last()
			one, _ := runs[0].Last()
			if !ok || r.Failed {
				return fmt.Errorf("seed %d went wrong in wasip1: %s\n%s", seed+1, first(r), r.text())
			}
			if last.Hash != one.Hash {
				return fmt.Errorf("seed %d: the timelines of two runs are not equal: %s and %s", seed+1, one.Hash, last.Hash)
			}
			hours += last.Hours
		}
	}
	took := time.Since(began)
	fmt.Fprintf(to, "%s in wasip1: %d seeds, %d runs of each, all timelines equal; %.1f agent-hours in %s: %.0f a minute\n",
		s.Name, s.fixed, equalRuns, hours, took.Round(time.Second/10), hours/took.Minutes())
	return nil
}
