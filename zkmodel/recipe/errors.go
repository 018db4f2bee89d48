package recipe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// The errors of this package. Every error that it returns wraps one of them, or
// the cause of the caller's context; none of the client library's own errors
// leaves it. Messages name the operation and the path or the host.
var (
	// ErrBadConfig says that a Config cannot work: no server, a malformed
	// address, an unreadable certificate.
	ErrBadConfig = errors.New("bad configuration")
	// ErrBadPath says that a path is not absolute or holds what ZooKeeper refuses.
	ErrBadPath = errors.New("bad path")
	// ErrNoNode says that the node, or the parent of a node to create, is not there.
	ErrNoNode = errors.New("node does not exist")
	// ErrNodeExists says that the node to create is there already.
	ErrNodeExists = errors.New("node exists already")
	// ErrNotEmpty says that the node to delete has children.
	ErrNotEmpty = errors.New("node has children")
	// ErrVersion says that the record was changed since it was read.
	ErrVersion = errors.New("version conflict")
	// ErrTooLarge says that a request would exceed the server's limit of 1 MiB; it was not sent.
	ErrTooLarge = errors.New("larger than the server accepts")
	// ErrAuth says that an access control list or the server refused us.
	ErrAuth = errors.New("not authorised")
	// ErrTLS says that a TLS handshake failed, on our side or on the server's.
	ErrTLS = errors.New("TLS refused")
	// ErrLocked says that another contender holds the lock.
	ErrLocked = errors.New("locked by another")
	// ErrFenceLost says that the contender of a held lock is gone, so that nothing was written under it.
	ErrFenceLost = errors.New("lock lost")
	// ErrReleased is the cause of a lock's context after its own Release.
	ErrReleased = errors.New("lock released")
	// ErrSessionLost says that the session is over, and all its locks and ephemeral nodes with it.
	ErrSessionLost = errors.New("session lost")
	// ErrConnectionLost says that the connection broke while a request was
	// under way: it may or may not have been applied. The session may live on.
	ErrConnectionLost = errors.New("connection lost")
	// ErrClosed says that the Client was closed.
	ErrClosed = errors.New("client closed")
	// ErrDamaged says that something is not what was written: a shard of a blob is missing or altered, a cursor says nothing.
	ErrDamaged = errors.New("not what was written")
	// ErrServer says that the server answered with an error that has no name here.
	ErrServer = errors.New("server error")
)

// sentinels maps what the library and the server say to our own errors.
var sentinels = []struct{ theirs, ours error }{
	{zk.ErrNoNode, ErrNoNode},
	{zk.ErrNodeExists, ErrNodeExists},
	{zk.ErrNotEmpty, ErrNotEmpty},
	{zk.ErrBadVersion, ErrVersion},
	{zk.ErrNoAuth, ErrAuth},
	{zk.ErrAuthFailed, ErrAuth},
	{zk.ErrInvalidACL, ErrAuth},
	{zk.ErrSessionExpired, ErrSessionLost},
	{zk.ErrShortBuffer, ErrTooLarge},
	{zk.ErrInvalidPath, ErrBadPath},
	{zk.ErrConnectionClosed, ErrConnectionLost},
	{zk.ErrClosing, ErrConnectionLost},
	{zk.ErrNoServer, ErrConnectionLost},
	{zk.ErrSessionMoved, ErrConnectionLost},
}

// nameless are the server's errors that have no name here.
var nameless = []error{zk.ErrNoChildrenForEphemerals, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrUnknown, zk.ErrInvalidFlags}

// translate returns our error for err, or nil. What is neither ours nor the
// server's came from the socket: the connection is lost.
func translate(verb, path string, err error) error {
	if err == nil {
		return nil
	}
	for _, s := range sentinels {
		if errors.Is(err, s.theirs) {
			return fmt.Errorf("%s %s: %w", verb, path, s.ours)
		}
	}
	ours := ErrConnectionLost
	if slices.ContainsFunc(nameless, func(theirs error) bool { return errors.Is(err, theirs) }) {
		ours = ErrServer
	}
	return fmt.Errorf("%s %s: %w: %s", verb, path, ours, err.Error()) // as text: theirs stays here
}

// ended returns the error of an operation that the end of a context stopped.
func ended(verb, path string, cause error) error {
	return fmt.Errorf("%s %s: %w", verb, path, cause)
}
