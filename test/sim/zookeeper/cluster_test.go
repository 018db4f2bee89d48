package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/configs/clock"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe/client"
)

// pause waits: a bubble's time passes when nobody has anything left to do.
func pause(d time.Duration) { <-time.After(d) }

// cluster is one of a test's own, in its bubble.
type cluster struct {
	*zookeeper.Cluster
	t *testing.T
}

// bubble runs a test on three servers, in a bubble: one that leaves a goroutine fails.
func bubble(t *testing.T, test func(c cluster)) {
	t.Helper()
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			c := zookeeper.New(zookeeper.Options{Servers: 3, Seed: seed, Tick: time.Second})
			defer c.Close()
			test(cluster{c, t})
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// connect begins a session that tries servers in turn.
func connect(t *testing.T, c cluster, name string, servers ...int) *zk.Conn {
	t.Helper()
	list, guard := &someHosts{}, client.NewGuard(trusting{}, clock.Clock{})
	for _, n := range servers {
		list.addrs = append(list.addrs, c.Addrs()[n-1])
	}
	conn, done, err := zk.Connect(c.Addrs(), 6*time.Second, zk.WithHostProvider(list), zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithDialer(func(network, addr string, wait time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			raw, err := c.Dialer(name)(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return guard.Wrap(raw, raw, addr, 6*time.Second), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range done {
		}
	})
	return conn
}

// someHosts are tried in turn; the library waits for a second before the first again.
type someHosts struct {
	addrs []string
	next  int
}

func (h *someHosts) Init([]string) error { return nil }
func (h *someHosts) Len() int            { return len(h.addrs) }
func (h *someHosts) Connected()          {}

func (h *someHosts) Next() (string, bool) {
	h.next++
	return h.addrs[h.next%len(h.addrs)], h.next > 1 && h.next%len(h.addrs) == 1%len(h.addrs)
}

func create(t *testing.T, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func exists(t *testing.T, conn *zk.Conn, path string) bool {
	t.Helper()
	for range 100 {
		there, _, err := conn.Exists(path)
		if err == nil {
			return there
		}
		pause(100 * time.Millisecond)
	}
	t.Fatalf("%s is not read", path)
	return false
}

// others are the servers that do not lead.
func others(c cluster) (list []int) {
	for i := range c.Addrs() {
		if i+1 != c.Leader() {
			list = append(list, i+1)
		}
	}
	return list
}

// Mistakes: followers that never lag; a sync that does not catch up; a server that takes a
// client which has seen more than it knows.
func TestFollowersLag(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		slow, leader := others(c)[0], c.Leader()
		reader, writer := connect(t, c, "reader", slow), connect(t, c, "writer", leader)
		exists(t, reader, "/")
		c.Lag(slow, 2*time.Second)
		create(t, writer, "/a", 0)
		pause(100 * time.Millisecond)
		if exists(t, reader, "/a") {
			t.Error("a server that lags knows already")
		}
		if _, err := reader.Sync("/"); err != nil || !exists(t, reader, "/a") {
			t.Errorf("not even behind a sync: %v", err)
		}
		create(t, writer, "/b", 0)
		both := connect(t, c, "both", leader, slow)
		exists(t, both, "/")
		for range 4 {
			was := exists(t, both, "/b")
			c.Break("both")
			pause(200 * time.Millisecond)
			if was && !exists(t, both, "/b") {
				t.Error("a client sees the past of what it saw")
			}
		}
	})
}

// Mistakes: a change of leader that loses sessions, nodes or watches, or that nobody notices.
func TestLeaderChanges(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2, 3)
		create(t, conn, "/e", zk.FlagEphemeral)
		before, id := c.Leader(), conn.SessionID()
		_, _, watch, err := conn.ExistsW("/later")
		if err != nil {
			t.Fatal(err)
		}
		c.LeaderChange()
		pause(4 * time.Second)
		if now := c.Leader(); now == before || now == 0 {
			t.Errorf("server %d led, and %d does", before, now)
		}
		if !exists(t, conn, "/e") || conn.SessionID() != id {
			t.Error("the session is gone")
		}
		other := connect(t, c, "b", 1, 2, 3)
		create(t, other, "/later", 0)
		if e := <-watch; e.Type != zk.EventNodeCreated {
			t.Errorf("told %v", e)
		}
		if _, st, err := other.Get("/later"); err != nil || st.Czxid>>32 != 2 {
			t.Errorf("%+v, %v: want another epoch", st, err)
		}
	})
}

// Mistake: a leader that is new ends the sessions of which the old one has heard nothing.
func TestNewLeaderGivesTime(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2, 3)
		create(t, conn, "/e", zk.FlagEphemeral)
		c.Cut("a")
		pause(3 * time.Second)
		c.LeaderChange()
		pause(time.Millisecond)
		for c.Leader() == 0 {
			pause(10 * time.Millisecond)
		}
		pause(4 * time.Second)
		c.Heal("a")
		pause(10 * time.Second)
		if !exists(t, conn, "/e") {
			t.Error("the session has ended")
		}
	})
}

// Mistake: what a client has sent on an old connection takes effect behind what it does on
// the next one.
func TestOldConnectionWritesNoMore(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2)
		create(t, conn, "/e", zk.FlagEphemeral)
		at := slices.Index(c.Addrs(), conn.Server()) + 1
		c.CutUp("a", at)
		lost := make(chan error, 1)
		go func() { _, err := conn.Set("/e", []byte("old"), -1); lost <- err }()
		if err := <-lost; err == nil {
			t.Error("a write passes a cut")
		}
		exists(t, conn, "/e")
		if conn.Server() == c.Addrs()[at-1] {
			t.Error("the client has not moved")
		}
		c.Heal("a")
		pause(time.Second)
		if _, st, err := conn.Get("/e"); err != nil || st.Version != 0 {
			t.Errorf("the old write is done: %+v, %v", st, err)
		}
	})
}

// Mistakes: events that come once; that never come when the client watches anew; that come twice for ever.
func TestEventsComeTwice(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		reader, writer := connect(t, c, "reader", 1, 2, 3), connect(t, c, "writer", 1, 2, 3)
		create(t, writer, "/a", 0)
		told := func() (n int) { // of one change, by who watches anew each time
			_, _, fired, err := reader.GetW("/a")
			if _, wrong := writer.Set("/a", nil, -1); err != nil || wrong != nil {
				t.Fatal(err, wrong)
			}
			for {
				select {
				case <-fired:
					n++
				case <-time.After(2 * time.Second):
					return n
				}
				if _, _, fired, err = reader.GetW("/a"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := reader.Sync("/"); err != nil {
			t.Fatal(err)
		}
		c.Double("reader", time.Second)
		n := 0
		for range 10 {
			n += told()
		}
		if twice := c.Traffic().Doubled; n <= 10 || n > 20 || twice != 10 {
			t.Errorf("10 changes are told of %d times; %d events came twice", n, twice)
		}
		c.Heal("reader")
		if n := told(); n != 1 || c.Traffic().Doubled != 10 {
			t.Errorf("a change is told of %d times to one that was healed", n)
		}
	})
}

// Mistake: an answer is lost with the write itself, or is not lost at all.
func TestAnswerIsLost(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2, 3)
		exists(t, conn, "/")
		c.DropAnswer("a")
		if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("create: %v", err)
		}
		if !exists(t, conn, "/a") {
			t.Error("the write is lost, too")
		}
	})
}

// Mistakes: a leader that is cut off stops serving at once, or never; the others end no
// session meanwhile; it takes writes; what it gets to know when it is back.
func TestOldLeaderIsTrustedForAWhile(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		old := c.Leader()
		stale, reader := connect(t, c, "stale", old), connect(t, c, "reader", old)
		exists(t, reader, "/")
		create(t, stale, "/e", zk.FlagEphemeral)
		c.Isolate(old)
		if !exists(t, stale, "/e") {
			t.Error("it serves no more")
		}
		answered := make(chan error, 1)
		go func() { _, err := stale.Set("/e", nil, -1); answered <- err }()
		pause(10 * time.Second)
		if _, _, err := reader.Exists("/"); err == nil {
			t.Error("it serves for ever")
		}
		if err := <-answered; err == nil {
			t.Error("it has written without the others")
		}
		if now := c.Leader(); now == old || now == 0 {
			t.Fatalf("%d leads", now)
		}
		fresh := connect(t, c, "fresh", others(c)...)
		pause(10 * time.Second)
		if exists(t, fresh, "/e") {
			t.Error("the session of a client that nobody hears has not ended")
		}
		create(t, fresh, "/new", 0)
		c.Join(old)
		pause(5 * time.Second)
		if !exists(t, connect(t, c, "late", old), "/new") {
			t.Error("a server that is back does not catch up")
		}
	})
}

// Mistakes: killed servers that answer; a majority that does not go on; a minority that does;
// what was committed is lost.
func TestServersDie(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2, 3)
		create(t, conn, "/a", 0)
		first := c.Leader()
		c.Kill(first)
		pause(10 * time.Second)
		second := c.Leader()
		if second == first || !exists(t, conn, "/a") {
			t.Errorf("%d led, %d leads", first, second)
		}
		c.Kill(second)
		pause(10 * time.Second)
		if _, _, err := conn.Exists("/a"); err == nil || c.Leader() != 0 {
			t.Errorf("one of three serves: %v, leader %d", err, c.Leader())
		}
		c.Start(first)
		pause(10 * time.Second)
		if !exists(t, conn, "/a") {
			t.Error("what was committed is lost")
		}
		c.Start(second)
	})
}

// Mistakes: packets pass a cut, or are lost by it; a client behind it keeps its session.
func TestCuts(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn, other := connect(t, c, "a", 1, 2, 3), connect(t, c, "b", 1, 2, 3)
		create(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		c.CutUp("a")
		written := make(chan error, 1)
		go func() { _, err := conn.Set("/e", nil, -1); written <- err }()
		pause(2 * time.Second)
		if _, st, err := other.Get("/e"); err != nil || st.Version != 0 {
			t.Errorf("a write has passed: %+v, %v", st, err)
		}
		c.Heal("a")
		if err := <-written; err != nil {
			t.Errorf("a short cut loses a write: %v", err)
		}
		c.Cut("a")
		pause(15 * time.Second)
		if exists(t, other, "/e") {
			t.Error("a session that is not heard lives on")
		}
		c.Heal("a")
		pause(5 * time.Second)
		if exists(t, conn, "/e") || conn.SessionID() == id {
			t.Error("the session goes on")
		}
	})
}

// Mistakes: a restored tree that has the future in it; numbers that go on, as if nobody had
// restored anything; a client that has seen more, and is let in.
func TestRestore(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		conn := connect(t, c, "a", 1, 2, 3)
		create(t, conn, "/a", 0)
		snap := c.Snapshot()
		create(t, conn, "/b", 0)
		_, before, err := conn.Get("/b")
		if err != nil {
			t.Fatal(err)
		}
		c.LeaderChange()
		pause(5 * time.Second)
		create(t, conn, "/c", 0)
		_, future, err := conn.Get("/c")
		if err != nil {
			t.Fatal(err)
		}
		c.Restore(snap)
		pause(5 * time.Second)
		late := connect(t, c, "b", 1, 2, 3)
		if !exists(t, late, "/a") || exists(t, late, "/b") || exists(t, late, "/c") {
			t.Error("the tree is not that of the snapshot")
		}
		create(t, late, "/b", 0)
		if _, now, err := late.Get("/b"); err != nil || now.Czxid>>32 != future.Czxid>>32 || now.Czxid == before.Czxid {
			t.Errorf("a node made at %#x, where there was %#x: %v", now.Czxid, future.Czxid, err)
		}
		if conn.State() == zk.StateHasSession {
			t.Error("a client that has seen the future is let in")
		}
	})
}

// Mistakes: an event that comes behind the answer which shows what it tells of; Slow that
// does nothing, or that mixes up one connection.
func TestEventsComeBeforeAnswers(t *testing.T) {
	bubble(t, func(c cluster) {
		t := c.t
		var told []string
		conn, other := connect(t, c, "a", 1, 2, 3), connect(t, c, "b", 1, 2, 3)
		create(t, other, "/a", 0)
		if _, err := conn.Sync("/"); err != nil {
			t.Fatal(err)
		}
		c.Slow("a", 200*time.Millisecond)
		for i := range 20 {
			asked := time.Now()
			_, st, watch, err := conn.GetW("/a")
			if time.Since(asked) < 200*time.Millisecond {
				t.Error("a slow way is not")
			}
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = other.Set("/a", nil, -1) }()
			for v := st.Version; v == st.Version; {
				_, now, err := conn.Get("/a")
				if err != nil {
					t.Fatal(err)
				}
				v = now.Version
			}
			select {
			case <-watch:
			default:
				told = append(told, fmt.Sprint(i))
			}
		}
		if len(told) > 0 {
			t.Errorf("not told before it was seen: %v", slices.Compact(told))
		}
	})
}
