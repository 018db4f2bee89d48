package soak

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
}

func newCustomer(w *world, i int) *customer {
	return &customer{w: w, name: fmt.Sprintf("zuul-%d", i), r: rand.New(rand.NewPCG(*seed, uint64(100+i)))}
}

// live makes requests until ctx ends, and closes its session then.
func (c *customer) live(ctx context.Context) {
	defer func() {
		if c.zuul != nil {
			c.zuul.Close()
		}
	}()
	for ctx.Err() == nil {
		if c.zuul == nil {
			if c.zuul = c.w.dial(ctx, c.name); c.zuul == nil {
				return
			}
		}
		if err := c.job(ctx); err != nil && ctx.Err() == nil {
			if errors.Is(err, errWrong) {
				c.w.watch.wrong("%s: %v", c.name, err)
			}
			c.w.watch.count("jobs broken off") // a server went; begin anew, as Zuul does
			c.zuul.Close()
			c.zuul = nil
		}
		pause(ctx, c.r, 0, 300*time.Millisecond)
	}
}

var errWrong = errors.New("this must not happen")

// job is one request and what becomes of it.
func (c *customer) job(ctx context.Context) error {
	labels := []string{"small", "large"}
	wish := zuul.Wish{
		Priority: []int{100, 200, 300}[c.r.IntN(3)], RelativePriority: c.r.IntN(5), Fresh: c.r.IntN(3) == 0,
		Provider: []string{"", "", "east", "west", "nowhere"}[c.r.IntN(5)],
	}
	for range 1 + c.r.IntN(3) {
		wish.Labels = append(wish.Labels, labels[c.r.IntN(2)])
	}
	id, err := c.zuul.Submit(wish)
	if err != nil {
		return err
	}
	if c.r.IntN(5) == 0 {
		pause(ctx, c.r, 0, 500*time.Millisecond)
		if c.r.IntN(2) == 0 {
			c.w.watch.count("requests cancelled")
			return c.zuul.Cancel(id)
		}
		c.w.watch.count("requests revised")
		_ = c.zuul.Revise(ctx, id, c.r.IntN(5)) // a launcher may have it already
	}
	out, err := c.zuul.Wait(ctx, id)
	switch {
	case err != nil:
		return err
	case out.State == "failed":
		// A cloud that fails now and then may fail five times in a row.
		c.w.watch.count("requests failed")
		if out.Reason == "" {
			return fmt.Errorf("%w: request %s failed for no reason", errWrong, id)
		}
		return c.zuul.Cancel(id)
	case len(out.Nodes) != len(wish.Labels):
		return fmt.Errorf("%w: request %s has %d nodes, want %d", errWrong, id, len(out.Nodes), len(wish.Labels))
	}
	if c.r.IntN(8) == 0 {
		c.w.watch.count("requests cancelled when fulfilled")
		return c.zuul.Cancel(id)
	}
	return c.use(ctx, wish, out)
}

// use takes the nodes of a request over and works with them.
func (c *customer) use(ctx context.Context, wish zuul.Wish, out zuul.Outcome) error {
	nodes, err := c.zuul.Accept(ctx, out)
	if err != nil {
		return err
	}
	zones := map[string]bool{}
	for i, n := range nodes {
		if types := n.Texts("type"); len(types) == 0 || types[0] != wish.Labels[i] {
			return fmt.Errorf("%w: node %s is %v, want %s", errWrong, n.ID, types, wish.Labels[i])
		}
		zones[n.Text("provider")] = true
		if n.Text("provider") == "west" {
			zones[n.Text("az")] = true
		}
		if !c.w.watch.take(n.ID, c.name) {
			return fmt.Errorf("%w: node %s was given away twice", errWrong, n.ID)
		}
	}
	if delete(zones, "west"); len(zones) > 1 {
		return fmt.Errorf("%w: request %s has nodes in %v", errWrong, out.ID, zones)
	}
	if err := c.zuul.Use(nodes...); err != nil {
		return err
	}
	pause(ctx, c.r, 0, 500*time.Millisecond)
	switch c.r.IntN(12) {
	case 0: // disappears with its locks
		c.w.watch.count("requestors disappeared")
		c.zuul.Close()
		c.zuul = nil
		return nil
	case 1:
		c.w.watch.count("nodes held")
		return c.zuul.Hold(time.Second, "to look at", nodes...)
	}
	c.w.watch.count("jobs done")
	return c.zuul.Return(nodes...)
}
