package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// equalRuns is how often Equal runs a seed.
const equalRuns = 2

// ErrNotEqual is a fixed seed in which something was wrong, or whose runs were not equal.
var ErrNotEqual = errors.New("a fixed seed failed")

// Equal runs the world's fixed seeds several times each, and demands that nothing is wrong, that the timelines of a
// seed are equal, and, where several are fixed, that another order has another one. part is how much of its time
// each world lives; 0 is all.
func (s *Sealed) Equal(ctx context.Context, to io.Writer, part float64) error {
	began := time.Now()
	var hours float64
	found := make([][equalRuns]Result, s.fixed)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for seed := range found {
		for i := range equalRuns {
			group.Go(func() (err error) {
				found[seed][i], err = s.Run(ctx, Run{Seed: uint64(seed) + 1, Part: part})
				return err
			})
		}
	}
	var other Result
	if s.fixed > 1 {
		group.Go(func() (err error) {
			other, err = s.Run(ctx, Run{Seed: 1, Order: 1, Part: part})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for seed, runs := range found {
		for _, r := range runs {
			last, ok := r.Last()
			one, _ := runs[0].Last()
			if !ok || r.Failed {
				return fmt.Errorf("%w: seed %d went wrong in wasip1: %s\n%s", ErrNotEqual, seed+1, first(r), r.text())
			}
			if last.Hash != one.Hash {
				return fmt.Errorf("%w: seed %d: the timelines of two runs are not equal: %s and %s", ErrNotEqual, seed+1, one.Hash, last.Hash)
			}
			hours += last.Hours
		}
	}
	if s.fixed > 1 {
		last, ok := other.Last()
		if one, _ := found[0][0].Last(); !ok || other.Failed || one.Hash == last.Hash {
			return fmt.Errorf("%w: seed 1 in another order went wrong in wasip1, or has the same timeline: %s\n%s", ErrNotEqual, first(other), other.text())
		}
		hours += last.Hours
	}
	took := time.Since(began)
	fmt.Fprintf(to, "%s in wasip1: %d seeds, %d runs of each, all timelines equal; %.1f agent-hours in %s: %.0f a minute\n",
		s.Name, s.fixed, equalRuns, hours, took.Round(time.Second/10), hours/took.Minutes())
	return nil
}
