package zookeeper

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options say what a cluster is like.
type Options struct {
	// Servers is how many there are; 0 is one, which is its own quorum.
	Servers int
	// Seed decides every delay and choice.
	Seed uint64
	// Tick is the servers' unit of time, 0 is two seconds. Sessions may last from 2 to 20
	// ticks, as far as MinTimeout and MaxTimeout say nothing else.
	Tick, MinTimeout, MaxTimeout time.Duration
	// SyncLimit is for how many ticks a server without its leader goes on; 0 is 5.
	SyncLimit int
	// Delay is the longest way of a packet; 0 is a millisecond.
	Delay time.Duration
	// Committed is called with each transaction, in their order; it must not call the Cluster.
	Committed func(Transaction)
}

// Cluster is some servers with one log. Its methods are safe for use by several goroutines.
type Cluster struct {
	opts    Options
	servers []*server

	mu       sync.Mutex // guards all of the servers and connections; never held while waiting
	closed   bool
	changed  chan struct{} // closed when a fault ends: those who dial look again
	leader   *server       // nil while there is none
	round    int           // counts elections, so that one that is overtaken does nothing
	epoch    int64
	zxid     int64
	log      []*transaction // from place base on
	base     int64
	sessions map[int64]*session
	over     map[int64]*session // that have ended
	begun    int64
	sweeping bool
	rng      *rand.Rand
	dials    map[string]uint64 // connections that each client has opened
	cuts     map[link]cut
	slow     map[string]time.Duration
	drops    map[string]int
	doubles  map[string]time.Duration
	stops    map[string]*stop
	traffic  Traffic
	agenda   agenda
}

type link struct {
	client string
	server int
}

type cut struct{ up, down bool }

// New starts a cluster that serves at once, until it is closed.
func New(o Options) *Cluster {
	o.Servers = max(o.Servers, 1)
	o.Tick = pick(o.Tick, 2*time.Second)
	o.MinTimeout, o.MaxTimeout = pick(o.MinTimeout, 2*o.Tick), pick(o.MaxTimeout, 20*o.Tick)
	o.SyncLimit, o.Delay = pick(o.SyncLimit, 5), pick(o.Delay, time.Millisecond)
	c := &Cluster{
		opts: o, changed: make(chan struct{}), sessions: map[int64]*session{}, over: map[int64]*session{}, rng: rand.New(rand.NewPCG(o.Seed, 0)),
		dials: map[string]uint64{}, cuts: map[link]cut{}, slow: map[string]time.Duration{}, drops: map[string]int{}, doubles: map[string]time.Duration{}, stops: map[string]*stop{},
	}
	for i := range o.Servers {
		c.servers = append(c.servers, newServer(i+1, o.Seed))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crown(c.servers[c.rng.IntN(o.Servers)])
	c.goAbout()
	return c
}

func pick[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// Addrs are the servers, as clients name them.
func (c *Cluster) Addrs() []string {
	var list []string
	for _, s := range c.servers {
		list = append(list, s.addr())
	}
	return list
}

// Close ends all connections; nothing happens in the cluster from then on.
func (c *Cluster) Close() {
	c.shut()
	<-c.agenda.over
}

func (c *Cluster) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		for _, cn := range slices.Clone(s.conns) {
			cn.reset()
		}
		s.up = false
	}
	c.closed = true
	c.agenda.timer.Reset(0)
	c.healed()
}

// hop is how long a packet is on its way.
func (c *Cluster) hop(rng *rand.Rand) time.Duration {
	return c.opts.Delay/10 + time.Duration(rng.Int64N(int64(c.opts.Delay)*9/10+1))
}

// healed has those look again who wait for a way to a server.
func (c *Cluster) healed() {
	close(c.changed)
	c.changed = make(chan struct{})
	for _, s := range c.servers {
		for _, cn := range s.conns {
			c.pump(&cn.up)
			c.pump(&cn.down)
		}
	}
}

// Dial opens a connection, as net.Dialer.DialContext does.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.dial(ctx, "", network, address)
}

// Dialer is Dial for a client that faults know by its name.
func (c *Cluster) Dialer(client string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.dial(ctx, client, network, address)
	}
}

func (c *Cluster) dial(ctx context.Context, client, network, address string) (net.Conn, error) {
	failed := func(err error) error { return &net.OpError{Op: "dial", Net: network, Err: err} }
	for {
		cn, wait, changed := c.open(client, address)
		if changed == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		} else {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		switch {
		case ctx.Err() != nil && cn != nil:
			_ = cn.Close() // nobody has used it
			fallthrough
		case ctx.Err() == context.DeadlineExceeded:
			return nil, failed(os.ErrDeadlineExceeded)
		case ctx.Err() != nil:
			return nil, failed(ctx.Err())
		case cn == nil:
			return nil, failed(syscall.ECONNREFUSED)
		}
		return cn, nil
	}
}

// open makes a connection, nil where the server refuses it; with a channel, the caller
// waits for that to be closed, as no way leads to the server.
func (c *Cluster) open(client, address string) (cn *conn, wait time.Duration, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.servers, func(s *server) bool { return s.addr() == address })
	c.dials[client]++
	name := fnv.New64a()
	_, _ = name.Write([]byte(client))
	first := rand.New(rand.NewPCG(c.opts.Seed^name.Sum64(), c.dials[client]))
	wait = c.hop(first)
	if i < 0 || c.closed {
		return nil, wait, nil
	}
	s := c.servers[i]
	if c.cuts[link{client, s.number}] != (cut{}) {
		c.dials[client]--
		return nil, 0, c.changed
	}
	if !s.up {
		return nil, wait, nil
	}
	cn = &conn{cluster: c, server: s, client: client, ready: make(chan struct{}, 1), data: map[string]struct{}{}, child: map[string]struct{}{}}
	cn.up = pipe{rng: first, passes: func() bool { return !c.cuts[link{client, s.number}].up }}
	cn.down = pipe{rng: rand.New(rand.NewPCG(first.Uint64(), 0)), passes: func() bool { return !c.cuts[link{client, s.number}].down }}
	s.conns = append(s.conns, cn)
	return cn, wait, nil
}
