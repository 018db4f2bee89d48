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
	hour   time.Duration // for how long all use the same recipe
}

// start begins an agent; stop ends it.
func (w *world) start(name string) *agent {
	w.started++
	rng := w.seed.Rand(uint64(w.started))
	a := &agent{name: name, host: stage.NewMachine(name, rng), judge: w.judge, rng: rand.New(rand.NewPCG(w.seed.Number, rng.Uint64())), done: make(chan struct{}), hour: w.seed.Part(length) / time.Duration(len(hours))}
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

// serve has one turn after the other.
func (a *agent) serve(ctx context.Context, s *recipe.Session) error {
	for ctx.Err() == nil {
		by := a.way()
		if err := a.turn(ctx, s, by, recordAt(recordsOf[by][a.rng.IntN(len(recordsOf[by]))])); err != nil && ctx.Err() == nil {
			a.judge.Note(a.name, "%v", err)
		}
		_ = s.Clock().Sleep(ctx, time.Duration(a.rng.Int64N(int64(2*time.Second))))
	}
	return context.Cause(ctx)
}

// work is what is done under a lock: a record that asks for something gets it, once.
func (a *agent) work(ctx context.Context, held *recipe.Held, record string, by way) error {
	if by == reading || by == claiming {
		return a.share(ctx, held, record, by)
	}
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
	if err := a.act(ctx, held, record); err != nil {
		return err
	}
	a.offers++
	_, err = held.Set(ctx, record, offer(a.name, a.offers), stat.Version)
	a.judge.written(err)
	if errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("%s was written while we held its lock: %w", record, err)
	}
	return err
}
