package recipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
)

const (
	// quietFor is how long a failure that repeats itself is not logged again.
	quietFor = 10 * time.Second
	// refusedPause is the pause after an operation that ZooKeeper refused, before it is retried.
	refusedPause = time.Second
)

// Client keeps a session with ZooKeeper alive: when one ends it begins the next.
// Its methods are safe for use by several goroutines.
type Client struct {
	cfg   Config
	hosts *hosts
	log   hclog.Logger

	stop context.CancelCauseFunc
	done <-chan struct{} // closed by Close
	work sync.WaitGroup

	mu       sync.Mutex
	session  *Session      // nil while there is none
	begun    int64         // sessions that were usable
	changed  chan struct{} // closed when session changes
	closed   bool
	failure  error // of the last connection that failed
	refused  error // why there never will be a session
	loggedAt time.Time
}

// Dial checks cfg and connects in the background; Session waits for the result.
// A bad Config is ErrBadConfig. Close ends the Client.
func Dial(cfg Config) (*Client, error) {
	cfg, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	cfg.log, cfg.observer = new(atomic.Pointer[Log]), new(atomic.Pointer[Observer])
	cfg.refused = &Throttle{Clock: cfg.Clock}
	ctx, stop := context.WithCancelCause(clock.With(context.Background(), cfg.Clock))
	c := &Client{cfg: cfg, hosts: newHosts(cfg.Servers, cfg.Clock, cfg.Rand), log: cfg.Logger, stop: stop, done: ctx.Done(), changed: make(chan struct{})}
	c.work.Go(func() { c.run(ctx) })
	return c, nil
}

// Close gives the session back, so that its ephemeral nodes vanish at once, and
// waits until nothing runs for the Client any more. Further calls do nothing.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop(ErrClosed)
	c.work.Wait()
}

// SetServers changes the list of servers. A session that is connected to a
// server outside of the new list moves to one in it, and lives on.
func (c *Client) SetServers(list []string) error {
	list, err := parseServers(list)
	if err != nil {
		return err
	}
	c.hosts.set(list)
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.moveAway()
	}
	return nil
}

// SetLog sets the log in which changes made through this Client are told; nil, as at first,
// is none.
func (c *Client) SetLog(log *Log) { c.cfg.log.Store(log) }

// Clock is what the Client, its sessions and all who work in them go by.
func (c *Client) Clock() clock.Clock { return c.cfg.Clock }

// Clock is that of the session's Client.
func (s *Session) Clock() clock.Clock { return s.cfg.Clock }

// Log is the log that SetLog has set; nil is none.
func (c *Client) Log() *Log { return c.cfg.log.Load() }

// Log is that of the session's Client; nil is none.
func (s *Session) Log() *Log { return s.cfg.log.Load() }

// Session returns the session that is alive, and waits for one if there is none.
// When ctx ends first the error also tells why the last connection failed.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	for {
		c.mu.Lock()
		s, changed, closed, refused := c.session, c.changed, c.closed, c.refused
		c.mu.Unlock()
		switch {
		case closed:
			return nil, fmt.Errorf("wait for session: %w", ErrClosed)
		case refused != nil:
			return nil, fmt.Errorf("begin session with %s: %w", strings.Join(c.hosts.all(), ","), refused)
		case s != nil && s.ctx.Err() == nil:
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err := ended("wait for session with", strings.Join(c.hosts.all(), ","), context.Cause(ctx))
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.failure != nil {
				err = fmt.Errorf("%w (%w)", err, c.failure)
			}
			return nil, err
		}
	}
}

// Serve runs body once for each session, one after the other. The context of
// body ends when its session does; the next body starts when the last one has
// returned. If body returns ErrAuth, Serve logs a warning and runs body
// again after a pause, because closed rights may return.
// Serve returns any other result of body in a living session, or when ctx
// ends or the Client is closed, the cause.
func (c *Client) Serve(ctx context.Context, body func(ctx context.Context, s *Session) error) error {
	for {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		bound, cancel := s.Bind(ctx)
		err = body(bound, s)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.ctx.Err() == nil && errors.Is(err, ErrAuth):
			s.awaitRights(ctx, err)
		case s.ctx.Err() == nil:
			return err
		case err != nil && !errors.Is(err, ErrSessionLost) && !errors.Is(err, context.Canceled):
			c.log.Warn("Work ended with its session; it begins again in the next one", "error", err)
		}
	}
}

// UntilAllowed calls write until ZooKeeper does not refuse it with ErrAuth, or ctx ends, and returns the last result. It is for
// results of long work, which closed rights must not discard.
func (s *Session) UntilAllowed(ctx context.Context, write func() error) error {
	for {
		err := write()
		if !errors.Is(err, ErrAuth) || ctx.Err() != nil {
			return err
		}
		s.awaitRights(ctx, err)
	}
}

// awaitRights reports a refused operation and returns when it is time to retry it, or ctx has ended.
func (s *Session) awaitRights(ctx context.Context, err error) {
	s.cfg.refused.Warn(s.log, "ZooKeeper refused an operation, will retry", "error", err, "retry", refusedPause)
	waitFor(ctx, s.Clock(), refusedPause)
}

// run begins one session after the other until ctx ends.
func (c *Client) run(ctx context.Context) {
	for ctx.Err() == nil {
		// A session outlives ctx for as long as giving it back takes.
		s, events, err := newSession(context.WithoutCancel(ctx), c.cfg, c.hosts, func(addr string, err error) { c.failed("connect "+addr, err) })
		if err != nil {
			c.log.Error("ZooKeeper session cannot be started; giving up", "error", err)
			c.refuse(err)
			return
		}
		err = c.keep(ctx, s)
		c.work.Go(func() { s.shutdown(events) })
		if errors.Is(err, ErrBadConfig) {
			c.refuse(err)
			return
		}
		if err != nil {
			c.failed("begin session", err)
			waitFor(ctx, c.Clock(), lastPause) // the servers are well, so they need not hear of us all the time
		}
	}
	c.publish(nil)
}

// keep publishes s once it is usable, and returns when it or ctx ends. An error
// says that it cannot be made usable, although it is alive.
func (c *Client) keep(ctx context.Context, s *Session) error {
	bound, cancel := s.Bind(ctx)
	defer cancel()
	select {
	case <-s.opened:
	case <-bound.Done():
		return nil
	}
	if err := s.furnish(bound); err != nil {
		if bound.Err() != nil {
			return nil
		}
		return err
	}
	c.log.Info("ZooKeeper session begins", "session", fmt.Sprintf("%#x", s.ID()), "timeout", s.Timeout())
	c.publish(s)
	<-bound.Done()
	if ctx.Err() == nil {
		c.log.Warn("ZooKeeper session ended; the next one is waited for", "cause", s.cause())
	}
	c.publish(nil)
	return nil
}

// publish makes s the current session and wakes those who wait for one.
func (c *Client) publish(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != nil {
		c.failure = nil
		c.begun++
	}
	c.session = s
	close(c.changed)
	c.changed = make(chan struct{})
}

// refuse tells those who wait for a session that there will be none.
func (c *Client) refuse(err error) {
	c.mu.Lock()
	c.refused = err
	c.mu.Unlock()
	c.publish(nil)
}

// failed notes why a connection failed, and logs it unless it has just done so. One that
// we have called off, as at the end, has not failed.
func (c *Client) failed(what string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	err = fmt.Errorf("%s: %w", what, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && c.failure.Error() == err.Error() && c.Clock().Since(c.loggedAt) < quietFor {
		return
	}
	c.failure, c.loggedAt = err, c.Clock().Now()
	c.log.Warn("Connection failed; it is tried again", "error", err)
}

// furnish makes a new session ready for use: authenticated, as fresh as all that
// was committed before it, and with its chroot in place.
func (s *Session) furnish(ctx context.Context) error {
	if d := s.cfg.Digest; d != nil {
		_, err := call(ctx, s, "authenticate", d.User, func() (struct{}, error) {
			return struct{}{}, s.conn.AddAuth("digest", []byte(d.User+":"+d.Password))
		})
		if err != nil {
			return err
		}
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	switch {
	case s.cfg.Chroot == "":
		return nil
	case s.cfg.ChrootExists:
		_, there, err := s.known(ctx, s.cfg.Chroot)
		if err == nil && !there {
			err = fmt.Errorf("chroot %s does not exist: %w", s.cfg.Chroot, ErrBadConfig)
		}
		return err
	}
	return s.ensure(ctx, s.cfg.Chroot)
}

var _ zk.Logger = zkLogger{}
