package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"poolkeeper/test/zuul"
)

// customer is one requestor, who does what it likes: waits, cancels, changes its
// mind about what is urgent, uses, holds and gives back, or just disappears.
type customer struct {
	w    *world
	name string
	r    *rand.Rand
	zuul *zuul.Client
	end  func() // of what watches over the session
	era  int    // how often the tree had gone back when our session began
	owes bool   // a node of kept that it was given comes back
}

// errWrong is what must not happen while our session lasts.
var errWrong = errors.New("this must not happen")

func newCustomer(w *world, i int) *customer {
	return &customer{w: w, name: fmt.Sprintf("zuul-%d", i), r: draw(lanes + 1 + i)}
}

// live makes requests until calm ends, and ends in peace what it has begun.
func (c *customer) live(calm context.Context) {
	ctx := context.WithoutCancel(calm)
	defer func() {
		if c.zuul != nil {
			c.end()
			c.zuul.Close()
		}
	}()
	for calm.Err() == nil {
		c.arrive(ctx)
		w := c.wish()
		if err := c.job(ctx, w); err != nil {
			if c.owes = w.patient; c.owes {
				c.w.watch.spare()
			}
			c.broken(err)
		}
		pause(calm, c.r, 0, 300*time.Millisecond)
	}
	c.arrive(ctx) // what it broke off at last is nobody else's to end
}

// arrive begins a session unless there is one, and cleans up what the last one left.
func (c *customer) arrive(ctx context.Context) {
	for c.zuul == nil {
		c.era = len(c.w.faults.backs())
		c.zuul = c.w.dial(ctx, c.name)
		c.end = c.closeWhenBack(ctx, c.zuul)
		if err := c.zuul.CleanUp(); err != nil {
			c.leave("")
			continue
		}
		if c.owes {
			c.owes = false
			c.w.watch.spare()
		}
	}
}

// closeWhenBack ends a session when the tree goes back: servers that have gone back refuse a client that
// has seen more than they have, and go-zookeeper asks them for ever.
func (c *customer) closeWhenBack(ctx context.Context, session *zuul.Client) (forget func()) {
	now, leave := c.w.faults.inThisTime(ctx)
	stop := context.AfterFunc(now, func() {
		if errors.Is(context.Cause(now), errBack) {
			session.Close()
		}
	})
	return func() { stop(); leave() }
}

// broken ends a job that went wrong: without blame where a server went, or our
// session. We begin anew then, as Zuul does.
func (c *customer) broken(err error) {
	ours := errors.Is(err, zuul.ErrGone) || errors.Is(err, zuul.ErrChanged) ||
		errors.Is(err, zuul.ErrNotOurs) || errors.Is(err, zuul.ErrLockTimeout)
	back := c.era != len(c.w.faults.backs()) // what we had is of another time
	if !back && (errors.Is(err, errWrong) || ours && !c.zuul.Lost()) {
		c.w.watch.wrong("%s: %v", c.name, err)
	}
	c.leave("jobs broken off")
}

// leave ends our session, and whatever it has locked.
func (c *customer) leave(why string) {
	if why != "" {
		c.w.watch.count(why)
	}
	c.end()
	c.zuul.Close()
	c.zuul = nil
}

// job is one request and what becomes of it.
func (c *customer) job(ctx context.Context, w wish) error {
	start := time.Now()
	id, err := c.zuul.Submit(w.Wish)
	if err != nil {
		return err
	}
	c.w.watch.flow.waits(id, w)
	defer c.w.watch.flow.over(id)
	if !w.patient && c.r.IntN(4) == 0 {
		pause(ctx, c.r, 0, 500*time.Millisecond)
		switch c.r.IntN(4) {
		case 0:
			c.w.watch.count("requests cancelled")
			return c.zuul.Cancel(id)
		case 1:
			// What it asked for is found when we are back.
			c.leave("requestors disappeared while they waited")
			pause(ctx, c.r, 0, 2*time.Second)
			return nil
		default:
			c.w.watch.count("requests revised")
			_ = c.zuul.Revise(ctx, id, c.r.IntN(5)) // a launcher may have it already
		}
	}
	// Where our session goes on in a tree that has gone back, watches of before tell nothing.
	now, leave := c.w.faults.inThisTime(ctx)
	defer leave()
	patient, cancel := context.WithTimeout(now, w.starving())
	defer cancel()
	out, err := c.zuul.Wait(patient, id)
	c.w.watch.flow.over(id)
	if errors.Is(err, context.DeadlineExceeded) {
		c.w.compareServers()
		return fmt.Errorf("%w: %+v starves: %w", errWrong, w.Wish, err)
	}
	if err != nil {
		return err
	}
	c.w.watch.served(w, time.Since(start))
	if out.State == "failed" {
		c.w.watch.count("requests failed")
		return errors.Join(w.mayFail(out), c.zuul.Cancel(id))
	}
	c.w.watch.flow.fulfilled(time.Now())
	if w.fails != "" || len(out.Nodes) != len(w.Labels) {
		return fmt.Errorf("%w: request %s of %v has nodes %v", errWrong, id, w.Labels, out.Nodes)
	}
	if !w.patient && c.r.IntN(8) == 0 {
		c.w.watch.count("requests cancelled when fulfilled")
		return c.zuul.Cancel(id)
	}
	return c.use(ctx, w, out)
}

// use takes the nodes of a request over and works with them.
func (c *customer) use(ctx context.Context, w wish, out zuul.Outcome) error {
	nodes, err := c.zuul.Accept(ctx, out)
	if err != nil {
		return err
	}
	for i, n := range nodes {
		if types := n.Texts("type"); len(types) == 0 || types[0] != w.Labels[i] {
			return fmt.Errorf("%w: node %s is %v, want %s", errWrong, n.ID, types, w.Labels[i])
		}
	}
	if err := c.zuul.Use(nodes...); err != nil {
		return err // some may come back unused, and others get them
	}
	for _, n := range nodes {
		if !c.w.watch.take(n.ID, c.name) {
			return fmt.Errorf("%w: node %s was used twice", errWrong, n.ID)
		}
	}
	pause(ctx, c.r, 0, 500*time.Millisecond)
	switch c.r.IntN(12) {
	case 0:
		c.leave("requestors disappeared with their nodes")
		return nil
	case 1:
		c.w.watch.count("nodes held")
		until := time.Now().Add(heldFor)
		if err := c.zuul.Hold(heldFor, "to look at", nodes...); err != nil {
			return err
		}
		for _, n := range nodes {
			c.w.watch.keep(n.ID, until)
		}
		return nil
	}
	c.w.watch.count("jobs done")
	return c.zuul.Return(nodes...)
}
