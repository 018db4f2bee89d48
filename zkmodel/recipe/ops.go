package recipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// maxRequest is what a server accepts in one request (jute.maxbuffer).
const maxRequest = 1<<20 - 1

// Mode says how a node is created; Ephemeral and Sequential combine with |.
type Mode int32

// The modes of nodes.
const (
	// Persistent nodes stay until they are deleted.
	Persistent Mode = 0
	// Ephemeral nodes are deleted by the server when the session ends.
	Ephemeral Mode = zk.FlagEphemeral
	// Sequential nodes get ten digits from their parent's counter appended to their name.
	Sequential Mode = zk.FlagSequence
)

// abs returns the path at the server.
func (s *Session) abs(path string) string {
	switch {
	case s.cfg.Chroot == "":
		return path
	case path == "/":
		return s.cfg.Chroot
	default:
		return s.cfg.Chroot + path
	}
}

// rel returns the path below the chroot, and false if it is not there.
func (s *Session) rel(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, s.cfg.Chroot)
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return "", false
	case rest == "":
		return "/", true
	default:
		return rest, true
	}
}

// node is what a read returns; watch is nil unless it was asked for.
type node struct {
	data     []byte
	children []string
	stat     Stat
	exists   bool
	watch    <-chan zk.Event
}

// Get returns the data of the node at path. Reads wait for a connection as long
// as ctx and the session last.
func (s *Session) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	if err := checkPath(path); err != nil {
		return nil, Stat{}, err
	}
	n, err := read(ctx, s, "get", path, func() (node, error) {
		data, stat, err := s.conn.Get(s.abs(path))
		return node{data: data, stat: newStat(stat)}, err
	})
	return n.data, n.stat, err
}

// Exists returns the Stat of the node at path, and whether there is one.
func (s *Session) Exists(ctx context.Context, path string) (Stat, bool, error) {
	if err := checkPath(path); err != nil {
		return Stat{}, false, err
	}
	return s.exists(ctx, s.abs(path))
}

func (s *Session) exists(ctx context.Context, abs string) (Stat, bool, error) {
	n, err := read(ctx, s, "look for", abs, func() (node, error) {
		exists, stat, err := s.conn.Exists(abs)
		return node{exists: exists, stat: newStat(stat)}, err
	})
	return n.stat, n.exists, err
}

// Known is Exists for nodes that we may not read, too. Since ZooKeeper 3.9 only those
// who may read a node can look for it; others are refused, but only where there is
// one: it exists, and its Stat is empty.
func (s *Session) Known(ctx context.Context, path string) (Stat, bool, error) {
	if err := checkPath(path); err != nil {
		return Stat{}, false, err
	}
	return s.known(ctx, s.abs(path))
}

func (s *Session) known(ctx context.Context, abs string) (Stat, bool, error) {
	stat, exists, err := s.exists(ctx, abs)
	if errors.Is(err, ErrAuth) {
		return Stat{}, true, nil
	}
	return stat, exists, err
}

// Children returns the names of the children of the node at path, in no order.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	n, err := read(ctx, s, "list", path, func() (node, error) {
		children, _, err := s.conn.Children(s.abs(path))
		return node{children: children}, err
	})
	return n.children, err
}

// getWatch is Get that also returns a channel for the next change.
func (s *Session) getWatch(ctx context.Context, path string) (node, error) {
	return read(ctx, s, "watch", path, func() (node, error) {
		data, stat, watch, err := s.conn.GetW(s.abs(path))
		return node{data: data, stat: newStat(stat), watch: watch}, err
	})
}

// existsWatch is Exists that also returns a channel for the next change.
func (s *Session) existsWatch(ctx context.Context, path string) (node, error) {
	return read(ctx, s, "watch", path, func() (node, error) {
		exists, stat, watch, err := s.conn.ExistsW(s.abs(path))
		return node{exists: exists, stat: newStat(stat), watch: watch}, err
	})
}

// childrenWatch is Children that also returns a channel for the next change.
func (s *Session) childrenWatch(ctx context.Context, path string) (node, error) {
	return read(ctx, s, "watch children of", path, func() (node, error) {
		children, stat, watch, err := s.conn.ChildrenW(s.abs(path))
		return node{children: children, stat: newStat(stat), watch: watch}, err
	})
}

// Watch calls see with the data of the node at path, now and after each change, until see
// returns false or ctx or the session ends. exists is false once the node is gone.
func (s *Session) Watch(ctx context.Context, path string, see func(data []byte, stat Stat, exists bool) (more bool)) {
	for ctx.Err() == nil && s.ctx.Err() == nil {
		n, err := s.getWatch(ctx, path)
		if err != nil && !errors.Is(err, ErrNoNode) {
			waitFor(ctx, s.Clock(), lastDiscard) // the read is refused, or ctx has ended
			continue
		}
		if !see(n.data, n.stat, err == nil) || err != nil {
			return
		}
		select {
		case <-n.watch:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
	}
}

// Sync waits until the server that we are connected to has caught up with all
// that the ensemble had committed when Sync was called. Reads after it are that fresh.
func (s *Session) Sync(ctx context.Context) error {
	_, err := read(ctx, s, "sync", "/", func() (string, error) { return s.conn.Sync("/") })
	return err
}

// Create makes a node and returns its path, which mode Sequential makes longer.
// After ErrConnectionLost the node may have been made.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode Mode) (string, error) {
	if err := checkNew(path, mode); err != nil {
		return "", err
	}
	if err := checkSize("create", path, len(data)); err != nil {
		return "", err
	}
	made, err := s.create(ctx, s.abs(path), data, mode)
	if err != nil {
		return "", err
	}
	made, _ = s.rel(made)
	return made, nil
}

func (s *Session) create(ctx context.Context, abs string, data []byte, mode Mode) (string, error) {
	return call(ctx, s, "create", abs, func() (string, error) {
		return s.conn.Create(abs, notNil(data), int32(mode), s.acl)
	})
}

// EnsurePath makes the node at path and all its parents, empty, where they are missing.
func (s *Session) EnsurePath(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	return s.ensure(ctx, s.abs(path))
}

func (s *Session) ensure(ctx context.Context, abs string) error {
	for {
		if _, there, err := s.known(ctx, abs); err != nil || there {
			return err
		}
		if parent, _ := splitPath(abs); parent != "/" {
			if err := s.ensure(ctx, parent); err != nil {
				return err
			}
		}
		_, err := s.create(ctx, abs, nil, Persistent)
		switch {
		case err == nil || errors.Is(err, ErrNodeExists):
			return nil
		case !errors.Is(err, ErrConnectionLost) && !errors.Is(err, ErrNoNode): // a racer may delete the parent
			return err
		}
	}
}

// Set replaces the data of the node at path if it still has version, or
// AnyVersion. After ErrConnectionLost it may have done so.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := checkPath(path); err != nil {
		return Stat{}, err
	}
	if err := checkSize("set", path, len(data)); err != nil {
		return Stat{}, err
	}
	return call(ctx, s, "set", path, func() (Stat, error) {
		stat, err := s.conn.Set(s.abs(path), notNil(data), version)
		return newStat(stat), err
	})
}

// Delete removes the node at path if it still has version, or AnyVersion, and
// has no children. After ErrConnectionLost it may be gone.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := call(ctx, s, "delete", path, func() (struct{}, error) {
		return struct{}{}, s.conn.Delete(s.abs(path), version)
	})
	return err
}

// discardPause is how long after the first refusal a node is deleted again; lastDiscard
// is the longest pause.
const (
	discardPause = 50 * time.Millisecond
	lastDiscard  = 2 * time.Second
)

// discard deletes a node of ours in the background, for as long as the session lives.
// It may be refused for a while, when somebody changes who may do what; a lock that
// stayed behind would keep everybody, us too, from what it guards.
func (s *Session) discard(path string) {
	s.background(func() {
		for pause := discardPause; s.deleteSurely(s.ctx, path) != nil && s.ctx.Err() == nil; pause = min(2*pause, lastDiscard) {
			waitFor(s.ctx, s.Clock(), pause)
		}
	})
}

// deleteSurely deletes the node at path, and repeats that after lost connections.
func (s *Session) deleteSurely(ctx context.Context, path string) error {
	for {
		err := s.Delete(ctx, path, AnyVersion)
		switch {
		case err == nil || errors.Is(err, ErrNoNode):
			return nil
		case !errors.Is(err, ErrConnectionLost):
			return err
		}
	}
}

// checkSize refuses what the server would answer by dropping the connection.
func checkSize(verb, path string, size int) error {
	const head = 256 // of a request: lengths, flags, the access control list
	if size+len(path)+head > maxRequest {
		return fmt.Errorf("%s %s: %w: %d bytes", verb, path, ErrTooLarge, size)
	}
	return nil
}

// notNil makes empty data of no data: a null would be news to Python's clients.
func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
