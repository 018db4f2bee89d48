package zktest

import (
	"context"
	"errors"
	"net"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Forbid takes from all clients all rights to the node at path, below root, and to
// all below it, as a program does that makes its records "owner only" and whose
// credentials the others lack. allow gives them back.
func Forbid(tb testing.TB, addr, root, nodePath string) (allow func()) {
	tb.Helper()
	return restrict(tb, addr, root, nodePath, nil)
}

// Protect is Forbid for a program that lets others read what it makes, and nothing else.
func Protect(tb testing.TB, addr, root, nodePath string) (allow func()) {
	tb.Helper()
	return restrict(tb, addr, root, nodePath, zk.WorldACL(zk.PermRead))
}

// restrict leaves all clients the rights of others.
func restrict(tb testing.TB, addr, root, nodePath string, others []zk.ACL) (allow func()) {
	tb.Helper()
	conn, events, err := zk.Connect([]string{addr}, patience, zk.WithLogInfo(false), zk.WithLogger(quiet{}),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			return (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), network, address)
		}))
	if err != nil {
		tb.Fatalf("forbid %s: %v", nodePath, err)
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	if err := conn.AddAuth("digest", []byte("owner:secret")); err != nil {
		tb.Fatalf("forbid %s: %v", nodePath, err)
	}
	set := func(acl []zk.ACL) {
		tb.Helper()
		if err := setACL(conn, path.Join(root, nodePath), acl); err != nil {
			tb.Fatalf("change the rights to %s: %v", nodePath, err)
		}
	}
	tb.Cleanup(conn.Close)
	set(append(zk.AuthACL(zk.PermAll), others...))
	return func() { tb.Helper(); set(zk.WorldACL(zk.PermAll)) }
}

// setACL changes the rights to the node at path and all below it. What vanishes
// meanwhile is left out.
func setACL(conn *zk.Conn, at string, acl []zk.ACL) error {
	names, _, err := conn.Children(at)
	if err == nil {
		_, err = conn.SetACL(at, acl, -1)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = setACL(conn, path.Join(at, name), acl)
		}
	}
	return err
}

// quiet is a log that nobody reads.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
