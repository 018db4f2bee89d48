package recipe

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/recipe/client"
)

// sendBuffer is the library's buffer for one request: the largest that a server
// accepts (jute.maxbuffer, 1 MiB less a byte by default) and its head.
const sendBuffer = 1<<20 + 4096

// Session is one ZooKeeper session. Ephemeral nodes, and with them all locks,
// live exactly as long as it does; it survives lost connections. All its methods
// are safe for use by several goroutines. A Session is never revived: after its
// end ask the Client for the next one.
type Session struct {
	cfg    Config
	hosts  *hosts
	log    hclog.Logger
	report func(addr string, err error) // of connections that fail

	ctx    context.Context
	cancel context.CancelCauseFunc
	conn   *zk.Conn
	acl    []zk.ACL
	guard  *client.Guard
	id     atomic.Int64
	opened chan struct{} // closed when the first server granted the session
	closes atomic.Bool   // the request that closes the session may still be sent
	work   sync.WaitGroup

	refusals refusals // of what we asked for in this session

	mu        sync.Mutex
	link      *client.Link
	routes    map[int]route
	lastRoute int
	closing   bool
}

// newSession starts to connect. The session ends with parent at the latest.
func newSession(parent context.Context, cfg Config, h *hosts, report func(string, error)) (*Session, <-chan zk.Event, error) {
	s := &Session{
		cfg: cfg, hosts: h, log: cfg.Logger, report: report,
		acl:    zk.WorldACL(zk.PermAll),
		opened: make(chan struct{}),
		routes: map[int]route{},
	}
	s.guard = client.NewGuard(guarded{s}, cfg.Clock)
	if cfg.Digest != nil && cfg.Digest.Private {
		s.acl = zk.AuthACL(zk.PermAll)
	}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	conn, events, err := zk.Connect(h.all(), cfg.Timeout,
		zk.WithDialer(s.dial),
		zk.WithHostProvider(hostProvider{h, s.ctx.Done()}),
		zk.WithEventCallback(s.dispatch),
		zk.WithMaxConnBufferSize(cmp.Or(cfg.MaxPacket, sendBuffer)),
		zk.WithMaxBufferSize(cfg.MaxPacket),
		zk.WithLogger(zkLogger{s.log}),
		zk.WithLogInfo(false))
	if err != nil {
		s.cancel(err)
		return nil, nil, fmt.Errorf("connect: %w: %s", ErrBadConfig, err.Error())
	}
	s.conn = conn
	return s, events, nil
}

// Context ends when the session does; its cause is ErrSessionLost or ErrClosed.
// It ends at the latest when the granted time-out has passed since a server last
// heard from us, so that a host that is cut off stops before others take over.
func (s *Session) Context() context.Context { return s.ctx }

// cause returns why the session ended, or nil.
func (s *Session) cause() error { return context.Cause(s.ctx) }

// ID returns the number that ZooKeeper gave the session; nodes bear it as EphemeralOwner.
func (s *Session) ID() int64 { return s.id.Load() }

// Timeout returns the time-out that the server granted.
func (s *Session) Timeout() time.Duration { return s.guard.Timeout() }

// Left returns for how long from now the session can be trusted without another
// word from a server; it is negative when that time is over. Whoever lets others
// work in its name grants them no more.
func (s *Session) Left() time.Duration { return s.guard.Left(s.Clock().Now()) }

// Connections is how many connections have served the session so far: where the number has
// changed, servers may have been away, and have given every session its time anew.
func (s *Session) Connections() int64 { return s.guard.Links() }

// Bind returns a context that ends with ctx or with the session, whichever is
// first, and has the cause of that end.
func (s *Session) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, s.ctx)
}

// bind derives from ctx a context that ends with other, too.
func bind(ctx, other context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return bound, func() {
		stop()
		cancel(context.Canceled)
	}
}

// end ends the session for this process: whatever was queued for it is refused from now on.
func (s *Session) end(cause error) {
	s.cancel(cause)
	s.dropLink()
}

// dropLink cuts the connection, if there is one; the session lives on.
func (s *Session) dropLink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		_ = s.link.Close() // it may be closed already
	}
}

// moveAway drops the connection to a server that is no longer in the list.
func (s *Session) moveAway() {
	s.mu.Lock()
	gone := s.link != nil && !s.hosts.has(s.link.Server())
	s.mu.Unlock()
	if gone {
		s.dropLink()
	}
}

// background runs f; shutdown waits for what began before it. What begins later
// finds the session's context ended, and is over soon.
func (s *Session) background(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		go f()
		return
	}
	s.work.Go(f)
}

// shutdown ends the session at the server, when it can be reached and has not
// ended yet, and waits for everything that ran for it.
func (s *Session) shutdown(events <-chan zk.Event) {
	if s.ctx.Err() == nil {
		s.closes.Store(true)
	}
	s.cancel(ErrClosed)
	s.conn.Close()
	s.dropLink()
	for range events {
	} // the library closes the channel as its last act
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.work.Wait()
}
