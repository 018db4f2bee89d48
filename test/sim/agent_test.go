package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel/recipe"
)

// Where things are in the tree of a simulation.
const (
	locks   = "/sim/locks"
	records = "/sim/records"
)

// recordCount is how many records there are, each with a lock: few, so that agents meet.
const recordCount = 2

func recordAt(i int) string           { return fmt.Sprintf("%s/%d", records, i) }
func lockOf(record string) string     { return locks + "/" + path.Base(record) }
func jobOf(data []byte) string        { return string(bytes.TrimPrefix(data, []byte(offered))) }
func isOffered(data []byte) bool      { return bytes.HasPrefix(data, []byte(offered)) }
func offer(name string, n int) []byte { return fmt.Appendf(nil, "%s%s-%d", offered, name, n) }

// offered begins the data of a record that asks for something to be made.
const offered = "make "

// How long an agent works under a lock: some steps, or, once in four times, some more, so that it takes longer than a session
// lasts without a server.
const (
	longestStep = 3 * time.Second
	mostSteps   = 3
	moreSteps   = 10
	longestTurn = (mostSteps + moreSteps) * longestStep
)

// agent is a process of ours: a client of recipe, and what it does with locks.
type agent struct {
	name   string
	host   *stage.Machine
	judge  *judge
	rng    *rand.Rand
	client *recipe.Client
	cancel context.CancelFunc
	done   chan struct{}
	offers int
}

// start begins an agent; stop ends it.
func (w *world) start(name string) *agent {
	w.started++
	rng := w.seed.Rand(uint64(w.started))
	a := &agent{name: name, host: stage.NewMachine(name, rng), judge: w.judge, rng: rand.New(rand.NewPCG(w.seed.Number, rng.Uint64())), done: make(chan struct{})}
	client, err := recipe.Dial(recipe.Config{
		Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(name), Clock: clock.From(a.host), Rand: rand.NewPCG(w.seed.Number, rng.Uint64()),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a.client = client
	ctx, cancel := context.WithCancel(w.t.Context())
	a.cancel = cancel
	go func() {
		defer close(a.done)
		_ = client.Serve(ctx, a.serve)
	}()
	return a
}

// stop ends an agent, as a process ends: with its session given back, if a server is reached.
func (a *agent) stop() {
	a.cancel()
	<-a.done
	a.client.Close()
}

// serve takes one lock after the other, and works under it.
func (a *agent) serve(ctx context.Context, s *recipe.Session) error {
	for ctx.Err() == nil {
		if err := a.turn(ctx, s, recordAt(a.rng.IntN(recordCount))); err != nil && ctx.Err() == nil {
			a.judge.Note(a.name, "%v", err)
		}
		_ = s.Clock().Sleep(ctx, time.Duration(a.rng.Int64N(int64(2*time.Second))))
	}
	return context.Cause(ctx)
}

// turn is what is done under a lock: a record that asks for something gets it, once.
func (a *agent) turn(ctx context.Context, s *recipe.Session, record string) error {
	held, err := recipe.NewLock(s, lockOf(record), a.name).Acquire(ctx)
	if err != nil {
		return err
	}
	a.judge.got(a.name, record)
	ctx, stop := held.Bind(ctx)
	defer stop()
	err = a.work(ctx, held, record)
	a.judge.over(a.name)
	if releasing := held.Release(ctx); err == nil && ctx.Err() == nil {
		err = releasing
	}
	return err
}

func (a *agent) work(ctx context.Context, held *recipe.Held, record string) error {
	s := held.Session()
	data, stat, err := s.Get(ctx, record)
	if err != nil {
		return err
	}
	if isOffered(data) {
		// The record comes first, so that nobody makes it again, whatever becomes of us.
		if stat, err = held.Set(ctx, record, []byte("taken "+jobOf(data)), stat.Version); err != nil {
			return err
		}
		a.judge.claim(a, jobOf(data))
	}
	steps := a.rng.IntN(mostSteps + 1)
	if a.rng.IntN(4) == 0 {
		steps += moreSteps
	}
	for range steps {
		if err := s.Clock().Sleep(ctx, time.Duration(a.rng.Int64N(int64(longestStep)))); err != nil {
			return err
		}
		a.judge.effect(a, record, s.ID())
	}
	a.offers++
	_, err = held.Set(ctx, record, offer(a.name, a.offers), stat.Version)
	if errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("%s was written while we held its lock: %w", record, err)
	}
	return err
}
