package recipe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/planted"
)

// dial connects to one server for the client library.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if err := s.hosts.pause(s.ctx); err != nil {
		return nil, err
	}
	wait := max(s.cfg.Timeout/3, time.Second)
	ctx, cancel := s.Clock().WithTimeout(s.ctx, wait)
	defer cancel()
	raw, err := s.cfg.Dial(ctx, network, addr)
	if err != nil {
		s.report(addr, err)
		return nil, err
	}
	conn := raw
	if s.cfg.TLS != nil {
		if conn, err = s.cfg.TLS.handshake(ctx, raw, addr); err != nil {
			_ = raw.Close()
			s.report(addr, err)
			return nil, err
		}
	}
	if s.id.Load() == 0 {
		wait = max(s.cfg.Timeout, 5*time.Second) // a new session is a write of the ensemble
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		_ = raw.Close()
		return nil, s.cause()
	}
	s.link = s.guard.Wrap(conn, raw, addr, wait)
	return s.link, nil
}

// handshake makes raw a TLS connection.
func (t *TLS) handshake(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	conf, err := t.load(host)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	conn := tls.Client(raw, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return conn, nil
}

// guarded is the session as its guard sees it.
type guarded struct{ *Session }

// Sending implements client.Session: nothing goes out for a session that has ended,
// except the request with which shutdown gives it back to the server.
func (s guarded) Sending() error {
	if s.ctx.Err() != nil && !s.closes.Load() {
		return s.cause()
	}
	return nil
}

// Granted implements client.Session. A session id that changes is the end of the old
// session, also when the server does not say so; the new one is refused, so that
// nothing queued for the old one can run in it.
func (s guarded) Granted(id int64) error {
	if id == 0 || (!s.id.CompareAndSwap(0, id) && s.id.Load() != id) {
		err := fmt.Errorf("session %#x expired: %w", s.id.Load(), ErrSessionLost)
		s.cancel(err)
		return err
	}
	return nil
}

// Connected implements client.Session.
func (s guarded) Connected(id int64) {
	s.hosts.accepted()
	select {
	case <-s.opened:
		s.log.Info("Connected again, the session lives on", "session", fmt.Sprintf("%#x", id))
	default:
		s.background(s.watchLease)
		close(s.opened)
	}
}

// Broken implements client.Session.
func (s guarded) Broken(addr string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	alert := new(net.OpError)
	if errors.As(err, &alert) && alert.Op == "remote error" { // how crypto/tls tells of a peer's alert
		err = fmt.Errorf("%w: %w", ErrTLS, err)
	}
	if s.id.Load() == 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		err = fmt.Errorf("the server closed the connection before it granted a session; its connection limit (maxClientCnxns) may be reached: %w", err)
	}
	s.report(addr, err)
}

// watchLease ends the session when its lease has run out.
func (s *Session) watchLease() {
	timer := s.Clock().NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		left := s.Left()
		if planted.Bug("lease") {
			left = s.Timeout()
		}
		if left <= 0 {
			s.end(fmt.Errorf("session %#x: not heard by a server for %s: %w", s.ID(), s.Timeout(), ErrSessionLost))
			return
		}
		timer.Reset(left)
	}
}

// catchUp waits until all events have come of what was committed when it was called.
func (s *Session) catchUp(ctx context.Context) error {
	for {
		if err := s.Sync(ctx); err != nil {
			return err
		}
		whole, changed := s.guard.Restored()
		if whole {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ended("wait for the watches of", "session", context.Cause(ctx))
		}
	}
}

// zkLogger shows the client library's messages at debug level.
type zkLogger struct{ log hclog.Logger }

// Printf implements zk.Logger.
func (l zkLogger) Printf(format string, args ...any) {
	if l.log.IsDebug() {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}
