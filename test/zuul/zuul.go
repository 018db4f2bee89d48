// Package zuul asks for nodes as Zuul does: a requestor for tests, benches and
// the demonstration.
//
// It is written from the description of the wire alone. It shares no code with
// the packages that it tests: records are maps, paths are literals, and the lock
// is its own rendering of kazoo's recipe.
package zuul

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// What a requestor can meet.
var (
	// ErrGone: the znode does not exist.
	ErrGone = errors.New("znode is gone")
	// ErrNotOurs: a node that was promised is allocated to somebody else.
	ErrNotOurs = errors.New("node is not allocated to the request")
	// ErrLockTimeout: a node's lock was not to be had in 30 seconds.
	ErrLockTimeout = errors.New("node is locked by another")
	// ErrChanged: somebody else wrote a record that is ours to write.
	ErrChanged = errors.New("record was changed by another")
	// ErrState: a request ended in another state than was hoped for.
	ErrState = errors.New("request was not fulfilled")
)

// lockTimeout is how long Zuul waits for the lock of a node that it was given.
const lockTimeout = 30 * time.Second

// Client is one Zuul.
type Client struct {
	conn    *zk.Conn
	chroot  string
	system  string
	session int64 // that Dial began
	closed  atomic.Bool

	mu   sync.Mutex
	made map[string]bool // folders that are there
}

// quiet drops what the ZooKeeper library says.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

// Dial connects a Zuul that calls itself system. Chroot is "" or "/path".
func Dial(ctx context.Context, servers []string, chroot, system string) (*Client, error) {
	return DialBy(ctx, new(net.Dialer).DialContext, servers, chroot, system, 0)
}

// DialBy is Dial with connections that dial opens, as net.Dialer.DialContext does. packet is the longest that there may
// be, for which the library has room ready; 0 is its own 1.5 MB, and no bound.
func DialBy(
	ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error), servers []string, chroot, system string, packet int,
) (*Client, error) {
	room := zk.WithMaxBufferSize(0)
	if packet > 0 {
		room = func(c *zk.Conn) { zk.WithMaxConnBufferSize(packet)(c); zk.WithMaxBufferSize(packet)(c) }
	}
	conn, events, err := zk.Connect(servers, 10*time.Second,
		zk.WithLogger(quiet{}), zk.WithLogInfo(false), zk.WithDialer((&seen{open: dial}).dial), room)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(servers, ","), err)
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return &Client{conn: conn, chroot: strings.TrimRight(chroot, "/"), system: system, session: conn.SessionID()}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("connect to %s: %w", strings.Join(servers, ","), context.Cause(ctx))
		}
	}
}

// Close ends the session, and with it all locks that are held. Requests stay.
func (c *Client) Close() {
	c.closed.Store(true)
	c.conn.Close()
}

func (c *Client) path(format string, args ...any) string {
	return c.chroot + "/nodepool" + fmt.Sprintf(format, args...)
}

// record is a JSON object with what it takes to write it back.
type record struct {
	path    string
	values  map[string]any
	version int32
}

func (c *Client) read(path string) (record, error) {
	data, stat, err := c.conn.Get(path)
	if err != nil {
		return record{}, gone("read", path, err)
	}
	return parse(path, data, stat)
}

// watch reads and tells when the record changes.
func (c *Client) watch(path string) (record, <-chan zk.Event, error) {
	data, stat, changed, err := c.conn.GetW(path)
	if err != nil {
		return record{}, nil, gone("read", path, err)
	}
	r, err := parse(path, data, stat)
	return r, changed, err
}

func parse(path string, data []byte, stat *zk.Stat) (record, error) {
	r := record{path: path, version: stat.Version}
	if err := json.Unmarshal(data, &r.values); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// write stores a changed record, if nobody else changed it meanwhile.
func (c *Client) write(r *record) error {
	data, err := json.Marshal(r.values)
	if err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	stat, err := c.conn.Set(r.path, data, r.version)
	if err != nil {
		return gone("write", r.path, err)
	}
	r.version = stat.Version
	return nil
}

func (r record) text(key string) string {
	s, _ := r.values[key].(string)
	return s
}

func (r record) texts(key string) []string {
	list, _ := r.values[key].([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// setState writes a state as Zuul does: with the time.
func (r record) setState(state string) {
	r.values["state"] = state
	r.values["state_time"] = seconds(time.Now())
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// gone names what was tried, and makes ErrGone of a missing znode, ErrChanged of
// one that was written meanwhile.
func gone(verb, path string, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		err = ErrGone
	case errors.Is(err, zk.ErrBadVersion):
		err = ErrChanged
	}
	return fmt.Errorf("%s %s: %w", verb, path, err)
}
