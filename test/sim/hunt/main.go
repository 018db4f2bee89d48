// Command hunt simulates worlds of faults for many seeds, and explains what goes wrong:
//
//	hunt [-world NAME] [-seed N] [-hours N] [-for D] many seeds, natively
//	hunt -world NAME -seed N -order N [-only LIST]  one run that is the same each time, with its timeline
//	hunt -repeat [-part N] [-world NAME]            the seeds that are fixed, several times each: the same each time
//
// It exits with 0 if nothing was found, 1 if something was, and 2 if it could not do what was asked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"poolkeeper/test/sim/replay"
	"poolkeeper/test/sim/series"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
	}
	os.Exit(code(err))
}

var (
	errWrong = errors.New("something was wrong")
	errUnmet = errors.New("not all was reached that seeds have to reach, so that they prove little")
)

// code is what it exits with. What was found counts for more than what could not be done.
func code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errWrong), errors.Is(err, errUnmet):
		return 1
	default:
		return 2
	}
}

// asked is what the command line asks for.
type asked struct {
	worlds     []replay.World
	search     replay.Search
	order      uint64
	only, tags string
	part       float64
	one        bool
	fixed      bool
	dir        string
}

func run(ctx context.Context) error {
	var a asked
	world := flag.String("world", "", "one world alone; all, if it is not given")
	flag.Uint64Var(&a.search.Seed, "seed", 1, "the first seed")
	flag.Uint64Var(&a.order, "order", 0, "in wasip1: what the runtime draws from")
	flag.Float64Var(&a.search.Hours, "hours", 100, "agent-hours of each world")
	flag.DurationVar(&a.search.For, "for", 0, "for how long to simulate at most, in all worlds together, and as long again to explain; 0 is no bound")
	flag.StringVar(&a.only, "only", "", "the only faults that are made, as 3,7-9; 0 is none")
	flag.StringVar(&a.tags, "tags", "", "build tags")
	flag.IntVar(&a.search.Jobs, "jobs", runtime.NumCPU(), "programs at a time")
	flag.BoolVar(&a.fixed, "repeat", false, "run the seeds that are fixed, in wasip1, and demand equal timelines")
	flag.Float64Var(&a.part, "part", 1, "with -repeat: which part of its time each world lives")
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { a.one = a.one || f.Name == "order" || f.Name == "only" })
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "POOLKEEPER_") {
			a.search.Env = append(a.search.Env, pair)
		}
	}
	for _, w := range replay.Worlds {
		if *world == "" || *world == w.Name {
			a.worlds = append(a.worlds, w)
		}
	}
	if len(a.worlds) == 0 {
		return fmt.Errorf("there is no world %q", *world)
	}
	var err error
	if a.dir, err = os.MkdirTemp("", "hunt-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(a.dir) }()
	switch {
	case a.fixed:
		return a.each(func(w replay.World) error { return a.equal(ctx, w) })
	case a.one:
		return a.each(func(w replay.World) error { return a.repeat(ctx, w) })
	default:
		return a.hunt(ctx, os.Stdout)
	}
}

// each does something with each world, also behind one that fails.
func (a asked) each(do func(replay.World) error) (failed error) {
	for _, w := range a.worlds {
		if err := do(w); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", w.Name, err))
		}
	}
	return failed
}

// equal runs a world's fixed seeds in wasip1.
func (a asked) equal(ctx context.Context, w replay.World) error {
	return a.seal(ctx, w, func(sealed *replay.Sealed) error {
		err := sealed.Equal(ctx, os.Stdout, a.part)
		if errors.Is(err, replay.ErrNotEqual) {
			err = errors.Join(errWrong, err)
		}
		return err
	})
}

// hunt simulates many seeds, and explains what it finds.
func (a asked) hunt(ctx context.Context, to io.Writer) error {
	for _, w := range a.worlds {
		native, err := w.Build(ctx, ".", a.dir, a.tags)
		if err != nil {
			return err
		}
		a.search.Natives = append(a.search.Natives, native)
	}
	found, err := a.search.Go(ctx, to)
	for _, what := range found.Unmet {
		fmt.Fprintln(to, what)
	}
	if len(found.Unmet) > 0 {
		err = errors.Join(err, errUnmet)
	}
	if len(found.Failures) > 0 {
		err = errors.Join(err, errWrong)
	}
	return errors.Join(err, a.explain(ctx, found.Failures, to))
}

// explain says more of what was found, as far as there is time.
func (a asked) explain(ctx context.Context, failures []*replay.Failure, to io.Writer) (err error) {
	if a.search.For > 0 {
		var stop func()
		ctx, stop = context.WithTimeoutCause(ctx, a.search.For, replay.ErrTime)
		defer stop()
	}
	for _, f := range failures {
		fmt.Fprintf(to, "%s, seed %d:\n", f.Native.Name, f.Found.Seed)
		bad := a.seal(ctx, f.Native.World, func(sealed *replay.Sealed) error {
			f.Sealed = sealed
			return f.Explain(ctx, to)
		})
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(to, "no more of it is known: %v; this is what happened natively:\n%s\n", context.Cause(ctx), f.LeadUp())
		case bad != nil:
			err = errors.Join(err, fmt.Errorf("%s: explain seed %d: %w", f.Native.Name, f.Found.Seed, bad))
		}
	}
	return err
}

// seal compiles a world for WASI, and does something with it.
func (a asked) seal(ctx context.Context, w replay.World, do func(*replay.Sealed) error) error {
	sealed, err := w.Seal(ctx, ".", a.dir, a.tags)
	if err != nil {
		return err
	}
	defer func() { _ = sealed.Close(ctx) }()
	return do(sealed)
}

// repeat is one run in wasip1, with its timeline.
func (a asked) repeat(ctx context.Context, w replay.World) error {
	r := replay.Run{Seed: a.search.Seed, Order: a.order, Env: a.search.Env, Long: true}
	if a.only != "" {
		var err error
		if r.Only, err = series.Numbers(a.only); err != nil {
			return err
		}
	}
	return a.seal(ctx, w, func(sealed *replay.Sealed) error {
		found, err := sealed.Run(ctx, r)
		if err != nil {
			return err
		}
		last, _ := found.Last()
		fmt.Println(strings.Join(last.Timeline, "\n"))
		fmt.Printf("seed %d, order %d: %s\n%s", r.Seed, r.Order, last.Hash, found.Output)
		if found.Failed {
			return errWrong
		}
		return nil
	})
}
