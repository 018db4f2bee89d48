package site

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel/operate"
)

// patience is how long a requestor waits for an answer, while there are faults.
const patience = 3 * time.Minute

// requestor asks for nodes as a Zuul does, one job after the other: it waits, cancels, changes its
// mind, uses, holds, gives back, or disappears with what it has.
type requestor struct {
	*stage.Machine
	world *world
	rng   *rand.Rand
	zuul  *zuul.Client
	done  chan struct{}

	restores int64  // that it knows of
	waitsFor string // the label that its next job is for, whose image is ready at last; "" is any
	open     atomic.Pointer[zuul.Client]
	looked   atomic.Int64 // age of the world when it last looked for what is its own
}

// restart has people start it again.
func (z *requestor) restart() {
	if c := z.open.Swap(nil); c != nil { // the library's Close holds a mutex while it waits: one closes it
		c.Close()
	}
}

// request has a requestor live.
func (w *world) request(name string) *requestor {
	w.started++
	z := &requestor{Machine: stage.NewMachine(name, w.seed.Rand(uint64(w.started))), world: w, rng: w.seed.Rand(uint64(w.started) + 1<<20), done: make(chan struct{})}
	go z.live(w.t.Context())
	return z
}

// live has one job after the other, until the world is calm.
func (z *requestor) live(ctx context.Context) {
	defer close(z.done)
	defer func() { z.leave() }()
	for !z.isCalm() {
		if z.arrive(ctx) {
			if err := z.job(ctx); err != nil {
				z.world.judge.Note(z.Name, "breaks off: %v", err)
				z.world.judge.Count("jobs broken off")
				z.leave()
			}
		}
		z.rest()
	}
	for !z.arrive(ctx) { // what it broke off at last is nobody else's to end
		wait(time.Second)
	}
	if err := z.last(ctx); err != nil {
		z.world.judge.Wrong(z.Name, "asks for a node when nothing goes wrong any more: %v", err)
	}
}

// last is a job for which there is always a node, sooner or later.
func (z *requestor) last(ctx context.Context) error {
	wish := zuul.Wish{Priority: 200, Labels: []string{"small"}, Tenant: "tenant-one"}
	id, err := z.zuul.Submit(wish)
	for err != nil { // people have ended its session, or it has ended
		z.leave()
		for !z.arrive(ctx) {
			wait(time.Second)
		}
		id, err = z.zuul.Submit(wish)
	}
	patient, cancel := context.WithTimeout(ctx, rest)
	defer cancel()
	out, err := z.zuul.Wait(patient, id)
	if err != nil {
		return err
	} else if out.State != "fulfilled" {
		return fmt.Errorf("request %s has %s: %s", id, out.State, out.Reason)
	}
	nodes, err := z.zuul.Accept(ctx, out)
	if err != nil {
		return err
	}
	return z.zuul.Return(nodes...)
}

// rest is the time between two jobs.
func (z *requestor) rest() {
	longest := 10 * time.Second
	if z.world.isNight() {
		longest *= 10 * quiet // a job takes some fifty seconds, too
	}
	select {
	case <-time.After(time.Duration(z.rng.Int64N(int64(longest)))):
	case z.waitsFor = <-z.world.arrived:
	case <-z.world.calm:
	}
}

func (z *requestor) isCalm() bool {
	select {
	case <-z.world.calm:
		return true
	default:
		return false
	}
}

// arrive begins a session unless there is one, and cleans up what the last one left.
func (z *requestor) arrive(ctx context.Context) bool {
	if now := z.world.restores.Load(); now != z.restores { // it knows requests of a tree that is gone
		z.leave()
		z.restores = now
	}
	if z.zuul != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := zuul.DialBy(ctx, z.world.cluster.Dialer(z.Name), z.world.cluster.Addrs(), "", z.Name, stage.MaxPacket)
	if err != nil {
		return false
	}
	z.zuul = client
	z.open.Store(client)
	z.looked.Store(int64(z.world.judge.Age()))
	if err := client.CleanUp(); err != nil {
		z.leave()
		return false
	}
	return true
}

// leave ends the session, and with it all locks.
func (z *requestor) leave() {
	z.restart()
	z.zuul = nil
}

// wish draws what a job asks for.
func (z *requestor) wish() zuul.Wish {
	w := zuul.Wish{
		Priority: []int{100, 200, 200, 300}[z.rng.IntN(4)], Fresh: z.rng.IntN(3) == 0,
		Provider: []string{"", "", "", "east", "west", "nowhere"}[z.rng.IntN(6)],
		Tenant:   []string{"tenant-one", limitedTenant}[z.rng.IntN(2)],
	}
	if z.rng.IntN(4) == 0 {
		w.RelativePriority = z.rng.IntN(5)
	}
	switch z.rng.IntN(16) {
	case 0:
		w.Labels = []string{"small", "unicorn"}
	case 1:
		w.Labels = slices.Repeat([]string{"large"}, 9)
	case 2, 3:
		w.Labels = []string{"rare"}
	case 4, 5:
		w.Labels = []string{"cloudy"}
	default:
		w.Labels = slices.Repeat([]string{[]string{"small", "large"}[z.rng.IntN(2)]}, 1+z.rng.IntN(2))
	}
	if z.waitsFor != "" {
		w.Labels, w.Provider, z.waitsFor = []string{z.waitsFor}, "", ""
	}
	return w
}

// job is one request, and what becomes of it.
func (z *requestor) job(ctx context.Context) error {
	id, err := z.zuul.Submit(z.wish())
	if err != nil {
		return err
	}
	switch z.rng.IntN(12) {
	case 0:
		wait(time.Duration(z.rng.Int64N(int64(5 * time.Second))))
		z.world.judge.Count("requests cancelled")
		return z.zuul.Cancel(id)
	case 1:
		z.world.judge.Count("requests revised")
		_ = z.zuul.Revise(ctx, id, z.rng.IntN(5)) // a launcher may have it already
	case 2:
		z.world.judge.Count("requestors that disappear while they wait")
		return errVanish
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := z.zuul.Wait(patient, id)
	switch {
	case err != nil:
		return err
	case out.State == "failed":
		z.world.judge.Count("requests failed")
		return z.zuul.Cancel(id)
	case z.rng.IntN(10) == 0:
		z.world.judge.Count("requests cancelled when fulfilled")
		return z.zuul.Cancel(id)
	}
	return z.use(ctx, out)
}

// errVanish is why a requestor breaks off that is well.
var errVanish = errors.New("disappears")

// use takes the nodes over, and does what requestors do with them.
func (z *requestor) use(ctx context.Context, out zuul.Outcome) error {
	nodes, err := z.zuul.Accept(ctx, out)
	if err != nil || len(nodes) == 0 { // a person may have taken the labels out of the request
		return err
	}
	if z.rng.IntN(10) == 0 { // as with a job that is gone by now
		z.world.judge.Count("nodes given back unused")
		if z.rng.IntN(2) == 0 {
			return z.zuul.Unlock(nodes...)
		}
		return z.zuul.Return(nodes...)
	}
	limit := time.Duration(30+z.rng.IntN(90)) * time.Second
	if z.rng.IntN(40) == 0 {
		z.world.judge.Count("nodes held unused")
		return z.zuul.Hold(limit, "to look at", nodes...)
	}
	if err := z.zuul.Use(nodes...); err != nil {
		return err
	}
	wait(time.Duration(z.rng.Int64N(int64(30 * time.Second))))
	switch z.rng.IntN(12) {
	case 0:
		z.world.judge.Count("requestors that disappear with nodes")
		return z.beside(ctx, nodes[0].ID, func() error {
			z.leave()
			return errVanish
		})
	case 1, 2:
		z.world.judge.Count("nodes held")
		if err := z.zuul.Hold(limit, "to look at", nodes...); err != nil || z.rng.IntN(2) == 0 {
			return err
		}
		wait(limit / 2)
		z.world.judge.Count("holds ended")
		return z.zuul.Unhold(ctx, nodes...)
	}
	z.world.judge.Count("jobs done")
	if z.rng.IntN(10) == 0 {
		return z.beside(ctx, nodes[0].ID, func() error { return z.zuul.Return(nodes...) })
	}
	return z.zuul.Return(nodes...)
}

// beside gives nodes up, half of the time while a person stands in line for one of them, who has a command under way.
func (z *requestor) beside(ctx context.Context, node string, end func() error) error {
	what := []string{"hold", "delete", "", ""}[z.rng.IntN(4)]
	if what == "" {
		return end()
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		z.world.command(ctx, what, node)
	}()
	wait(operate.LockWait / 2)
	err := end()
	<-over
	return err
}
