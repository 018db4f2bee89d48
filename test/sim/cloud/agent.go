package cloud

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// ErrCrashed is what calls of an agent end with that has crashed.
var ErrCrashed = errors.New("the agent has crashed")

// Agent is one process and its way to the clouds.
type Agent struct {
	cloud *Cloud
	name  string
	seed  uint64
	dead  chan struct{}

	mu     sync.Mutex // never held while waiting
	paused chan struct{}
	calls  uint64
}

// Agent makes the way of one process. A process that is started anew has a new one.
func (c *Cloud) Agent(name string) *Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[name]++
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return &Agent{cloud: c, name: name, seed: sum.Sum64() ^ c.agents[name]<<48, dead: make(chan struct{})}
}

// Pause holds back what the agent asks for from now on, and the answers to what it has asked.
func (a *Agent) Pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused == nil {
		a.paused = make(chan struct{})
	}
}

// Resume ends Pause.
func (a *Agent) Resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
	}
}

// Crash ends the agent: what it asks for from now on is not done, and its calls return. What is
// on its way may be done or not.
func (a *Agent) Crash() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.dead:
	default:
		close(a.dead)
	}
}

// pass waits while the agent is paused.
func (a *Agent) pass() error {
	for {
		a.mu.Lock()
		paused := a.paused
		a.mu.Unlock()
		select {
		case <-a.dead:
			return ErrCrashed
		default:
		}
		if paused == nil {
			return nil
		}
		select {
		case <-paused:
		case <-a.dead:
		}
	}
}

// Open opens the cloud of a provider's section.
func (a *Agent) Open(section configs.Provider) (providers.Provider, error) {
	a.cloud.mu.Lock()
	defer a.cloud.mu.Unlock()
	return &handle{agent: a, cloud: a.cloud, place: a.cloud.place(section.Name), section: section}, nil
}

// handle is one agent's way to one cloud.
type handle struct {
	agent   *Agent
	cloud   *Cloud
	place   *place
	section configs.Provider
}

// Name implements providers.Provider.
func (h *handle) Name() string { return h.section.Name }

// Close implements providers.Provider.
func (h *handle) Close() error { return nil }

// call is one that an agent has made.
type call struct {
	*handle
	op      string
	rng     *rand.Rand
	fault   Fault
	there   time.Duration // until the cloud does it
	back    time.Duration // of the answer
	arrives bool          // if the agent crashes meanwhile
}

// begin makes a call, with all that will happen to it.
func (h *handle) begin(ctx context.Context, op string) (*call, error) {
	if err := h.agent.pass(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h.agent.mu.Lock()
	h.agent.calls++
	n := h.agent.calls
	h.agent.mu.Unlock()
	c := &call{handle: h, op: op, rng: rand.New(rand.NewPCG(h.cloud.opts.Seed^h.agent.seed, n))}
	c.there, c.back, c.arrives = c.draw(1), c.draw(1), c.rng.IntN(2) == 0
	h.cloud.mu.Lock()
	c.fault = h.cloud.meet(h.place, op, c.rng)
	h.cloud.mu.Unlock()
	if c.fault == Slow {
		c.back += c.draw(100)
	}
	return c, nil
}

// draw is about so many times as long as a usual answer takes.
func (c *call) draw(times int64) time.Duration {
	usual := times * int64(c.cloud.opts.Answer)
	return time.Duration(usual/4 + c.rng.Int64N(usual))
}

// ask has the cloud do something, which is called with the cloud's mutex held; what it fails
// with is the answer. It is not called when the call fails on its way.
func (h *handle) ask(ctx context.Context, op string, do func(*call) error) error {
	c, err := h.begin(ctx, op)
	if err != nil {
		return err
	}
	if err := c.send(ctx, do); err != nil {
		return errors.Join(c.agent.pass(), err)
	}
	return c.answer(ctx)
}

// send has the cloud do it, after a while.
func (c *call) send(ctx context.Context, do func(*call) error) error {
	switch c.fault {
	case Hung:
		return c.hang(ctx)
	case Error:
		return c.fail(ctx, "%w: the cloud has failed", providers.ErrTransient)
	case Refused:
		return c.fail(ctx, "%w: the cloud has refused it", providers.ErrQuota)
	default:
	}
	err := c.wait(ctx, c.there)
	if err == nil || c.fault == Lost && !errors.Is(err, ErrCrashed) || c.arrives && errors.Is(err, ErrCrashed) {
		err = errors.Join(err, c.now(do))
	}
	return err
}

// now has the cloud do it.
func (c *call) now(do func(*call) error) error {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	return do(c)
}

// answer brings the answer, if one comes.
func (c *call) answer(ctx context.Context) error {
	if c.fault == Lost {
		return c.unheard(ctx)
	}
	if err := c.wait(ctx, c.back); err != nil {
		return err
	}
	return c.agent.pass()
}

// unheard is how a call ends whose answer does not come.
func (c *call) unheard(ctx context.Context) error {
	c.there = c.draw(50)
	if c.op == OpCreate {
		return c.fail(ctx, "%w: the connection has ended", providers.ErrUnanswered)
	}
	return c.fail(ctx, "%w: the connection has ended without an answer", providers.ErrTransient)
}

func (c *call) fail(ctx context.Context, format string, why error) error {
	if err := c.wait(ctx, c.there); err != nil {
		return err
	}
	return errors.Join(c.agent.pass(), fmt.Errorf(format, why))
}

// hang waits for the end of ctx, or of the fault.
func (c *call) hang(ctx context.Context) error {
	c.cloud.mu.Lock()
	quiet := c.place.quiet
	c.cloud.mu.Unlock()
	select {
	case <-quiet:
		return c.fail(ctx, "%w: the connection has ended", providers.ErrTransient)
	case <-ctx.Done():
		return errors.Join(c.agent.pass(), context.Cause(ctx))
	case <-c.agent.dead:
		return ErrCrashed
	}
}

// wait waits for d by the cloud's clock.
func (c *call) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(c.agent.pass(), context.Cause(ctx))
	case <-c.agent.dead:
		return ErrCrashed
	}
}
