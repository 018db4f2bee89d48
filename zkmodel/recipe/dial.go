package recipe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
)

// dial connects to one server for the client library.
func (s *Session) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if err := s.hosts.pause(s.ctx); err != nil {
		return nil, err
	}
	wait := max(s.cfg.Timeout/3, time.Second)
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, network, addr)
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
	s.lease.restart()
	seen := s.zxid.Load()
	s.link = newLink(conn, raw, addr, wait, seen, s.rewatch.restart(seen), s)
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

// sending implements tap: nothing goes out for a session that has ended, except
// the farewell with which shutdown gives it back to the server.
func (s *Session) sending(packet []byte) error {
	if s.ctx.Err() != nil && !s.bye.Load() {
		return s.cause()
	}
	s.lease.send(time.Now())
	s.rewatch.sent(packet)
	return nil
}

// connected implements tap. A session id that changes is the end of the old
// session, also when the server does not say so; the new one is refused, so that
// nothing queued for the old one can run in it.
func (s *Session) connected(id int64, timeout time.Duration) error {
	if id == 0 || (!s.id.CompareAndSwap(0, id) && s.id.Load() != id) {
		err := fmt.Errorf("session %#x expired: %w", s.id.Load(), ErrSessionLost)
		s.cancel(err)
		return err
	}
	s.lease.answer()
	s.lease.grant(timeout)
	s.hosts.accepted()
	select {
	case <-s.opened:
		s.log.Info("reconnected", "session", fmt.Sprintf("%#x", id))
	default:
		s.background(s.watchLease)
		close(s.opened)
	}
	return nil
}

// answered implements tap.
func (s *Session) answered(xid uint32, zxid int64) {
	s.lease.answer()
	if zxid > s.zxid.Load() {
		s.zxid.Store(zxid) // one goroutine reads a link, and one link is open at a time
	}
	s.rewatch.answered(xid)
}

// broken implements tap.
func (s *Session) broken(addr string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	alert := new(net.OpError)
	if errors.As(err, &alert) && alert.Op == "remote error" { // how crypto/tls tells of a peer's alert
		err = fmt.Errorf("%w: %w", ErrTLS, err)
	}
	s.report(addr, err)
}

// watchLease ends the session when its lease has run out.
func (s *Session) watchLease() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		left := s.lease.left(time.Now())
		if left <= 0 {
			s.end(fmt.Errorf("session %#x: not heard by a server for %s: %w", s.ID(), s.Timeout(), ErrSessionLost))
			return
		}
		timer.Reset(left)
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
