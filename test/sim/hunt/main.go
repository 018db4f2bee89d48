// Command hunt simulates worlds of faults for many seeds, and explains what goes wrong:
//
//	hunt [-world NAME] [-seed N] [-hours N]       many seeds, natively
//	hunt -world NAME -seed N -order N [-only LIST] one run that is the same each time, with its timeline
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"poolkeeper/test/sim/replay"
	"poolkeeper/test/sim/series"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

var (
	errWrong = errors.New("something was wrong")
	errUnmet = errors.New("not all was reached that seeds have to reach, so that they prove little")
)

// asked is what the command line asks for.
type asked struct {
	seed, order uint64
	hours       float64
	only, tags  string
	jobs        int
	one         bool
	env         []string
	dir         string
}

func run(ctx context.Context) error {
	var a asked
	world := flag.String("world", "", "one world alone; all, if it is not given")
	flag.Uint64Var(&a.seed, "seed", 1, "the first seed")
	flag.Uint64Var(&a.order, "order", 0, "in wasip1: what the runtime draws from")
	flag.Float64Var(&a.hours, "hours", 100, "agent-hours of each world")
	flag.StringVar(&a.only, "only", "", "the only faults that are made, as 3,7-9; 0 is none")
	flag.StringVar(&a.tags, "tags", "", "build tags")
	flag.IntVar(&a.jobs, "jobs", runtime.NumCPU(), "programs at a time")
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { a.one = a.one || f.Name == "order" || f.Name == "only" })
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "POOLKEEPER_") {
			a.env = append(a.env, pair)
		}
	}
	var err error
	if a.dir, err = os.MkdirTemp("", "hunt-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(a.dir) }()
	known, failed := false, error(nil)
	for _, w := range replay.Worlds {
		if *world != "" && *world != w.Name {
			continue
		}
		known = true
		if err := a.world(ctx, w); err != nil { // the other worlds are looked at all the same
			failed = errors.Join(failed, fmt.Errorf("%s: %w", w.Name, err))
		}
	}
	if !known {
		return fmt.Errorf("there is no world %q", *world)
	}
	return failed
}

// world does in one world what was asked.
func (a asked) world(ctx context.Context, w replay.World) error {
	if a.one {
		return a.repeat(ctx, w)
	}
	native, err := w.Build(ctx, ".", a.dir, a.tags)
	if err != nil {
		return err
	}
	h := replay.Hunt{Native: native, Seed: a.seed, Hours: a.hours, Jobs: a.jobs, Env: a.env}
	began := time.Now()
	failed, err := h.Go(ctx)
	if err != nil {
		return err
	}
	h.Tell(os.Stdout, time.Since(began))
	if failed == nil {
		return unmet(h.Unmet())
	}
	sealed, err := w.Seal(ctx, ".", a.dir, a.tags)
	if err != nil {
		return err
	}
	defer func() { _ = sealed.Close(ctx) }()
	f := replay.Failure{Native: native, Sealed: sealed, Found: *failed, Jobs: a.jobs, Env: a.env}
	return errors.Join(f.Explain(ctx, os.Stdout), errWrong)
}

// unmet tells what was not reached.
func unmet(list []string) error {
	for _, what := range list {
		fmt.Println(what)
	}
	if len(list) > 0 {
		return errUnmet
	}
	return nil
}

// repeat is one run in wasip1, with its timeline.
func (a asked) repeat(ctx context.Context, w replay.World) error {
	sealed, err := w.Seal(ctx, ".", a.dir, a.tags)
	if err != nil {
		return err
	}
	defer func() { _ = sealed.Close(ctx) }()
	r := replay.Run{Seed: a.seed, Order: a.order, Env: a.env, Long: true}
	if a.only != "" {
		if r.Only, err = series.Numbers(a.only); err != nil {
			return err
		}
	}
	found, err := sealed.Run(ctx, r)
	if err != nil {
		return err
	}
	last, _ := found.Last()
	fmt.Println(strings.Join(last.Timeline, "\n"))
	fmt.Printf("seed %d, order %d: %s\n%s", a.seed, a.order, last.Hash, found.Output)
	if found.Failed {
		return errWrong
	}
	return nil
}
