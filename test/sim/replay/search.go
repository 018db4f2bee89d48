package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Search is a hunt in several worlds, one after the other.
type Search struct {
	Natives []Native
	Seed    uint64
	Hours   float64       // of each world
	For     time.Duration // for all of them; 0 is as long as it takes
	Jobs    int
	Env     []string
}

// Trove is what a Search has found.
type Trove struct {
	Failures []*Failure // of each world at most one
	Unmet    []string   // what had to be reached and was not
}

// Go hunts in all worlds, and tells what it did in each. Worlds share the time: what one leaves the others have.
// To have no more time is no error. What was found before an error counts.
func (s Search) Go(ctx context.Context, to io.Writer) (found Trove, err error) {
	began := time.Now()
	for i, native := range s.Natives {
		h := &Hunt{Native: native, Seed: s.Seed, Hours: s.Hours, Jobs: s.Jobs, Env: s.Env}
		failed, bad := s.one(ctx, h, (s.For-time.Since(began))/time.Duration(len(s.Natives)-i), to)
		if failed != nil {
			f := &Failure{Native: native, Found: *failed, Jobs: s.Jobs, Env: s.Env}
			f.Say(to)
			found.Failures = append(found.Failures, f)
		} else {
			for _, what := range h.Unmet() {
				found.Unmet = append(found.Unmet, native.Name+": "+what)
			}
		}
		if bad != nil { // the other worlds are looked at all the same
			err = errors.Join(err, fmt.Errorf("%s: %w", native.Name, bad))
		}
	}
	return found, err
}

// one hunts in one world for so long, if there is a bound.
func (s Search) one(ctx context.Context, h *Hunt, long time.Duration, to io.Writer) (*Result, error) {
	if s.For > 0 {
		var stop func()
		ctx, stop = context.WithTimeoutCause(ctx, long, ErrTime)
		defer stop()
	}
	began := time.Now()
	failed, err := h.Go(ctx)
	h.Tell(to, time.Since(began))
	if s.For > 0 && failed == nil && errors.Is(context.Cause(ctx), ErrTime) {
		fmt.Fprintf(to, "%s: its %s were over; %g agent-hours were wanted\n", h.Native.Name, long.Round(time.Second/10), h.Hours)
	}
	return failed, err
}
