package openstack

import (
	"context"
	"sync"
	"time"
)

// roster is the list of the project's servers, shared by all who wait for one:
// a hundred launches cost as many calls as one.
type roster struct {
	list func(context.Context) ([]server, error)

	mu      sync.Mutex
	latest  *census // the last one that succeeded
	running *census
}

// census is one reading of the list.
type census struct {
	began   time.Time
	took    time.Duration
	done    chan struct{} // closed when servers or err are there
	servers map[string]*server
	err     error
	ended   bool // err is that of the reader's own context
}

// since gives a list whose reading began at or after t. Who comes first reads
// it for all.
func (r *roster) since(ctx context.Context, t time.Time) (*census, error) {
	for {
		c, mine := r.join(t)
		if mine {
			r.read(ctx, c)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case c.ended && !mine:
			continue // whoever read it was called off; we were not
		case c.err != nil:
			return nil, c.err
		case !c.began.Before(t):
			return c, nil
		}
	}
}

// join gives a list that is new enough, or the one being read, or one that the
// caller must read.
func (r *roster) join(t time.Time) (c *census, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest != nil && !r.latest.began.Before(t) {
		return r.latest, false
	}
	if r.running != nil {
		return r.running, false
	}
	r.running = &census{began: time.Now(), done: make(chan struct{})}
	return r.running, true
}

// read reads the list into c.
func (r *roster) read(ctx context.Context, c *census) {
	all, err := r.list(ctx)
	c.err, c.ended, c.took = err, err != nil && ctx.Err() != nil, time.Since(c.began)
	c.servers = make(map[string]*server, len(all))
	for i := range all {
		c.servers[all[i].ID] = &all[i]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = nil
	if err == nil {
		r.latest = c
	}
	close(c.done)
}

// cost is how long it took to read the last list.
func (r *roster) cost() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest == nil {
		return 0
	}
	return r.latest.took
}
