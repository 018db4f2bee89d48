package recipe_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// dialCounter counts connections, and opens them as its field does.
type dialCounter struct {
	calls atomic.Int64
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *dialCounter) use(cfg *recipe.Config) {
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		d.calls.Add(1)
		return d.dial(ctx, network, address)
	}
}

// TestDialIsTheOnlyWayOut lets a Client live in a bubble, on pipes, at a server whose name no
// resolver knows: a session begins, survives a lost connection, and ends with its server. A
// look-up, a socket or a mutex that is held over a wait would stop the bubble's clock.
func TestDialIsTheOnlyWayOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{seen: make(chan fakeCall, 100), told: make(chan int64, 100)}
		f.next.Store(1)
		var ends []net.Conn
		up := true
		counter := &dialCounter{dial: func(_ context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "zk.invalid:2181" {
				t.Errorf("dialled %s %s", network, address)
			}
			if !up {
				return nil, context.DeadlineExceeded
			}
			ours, theirs := net.Pipe()
			ends = append(ends, theirs)
			go f.serve(theirs)
			return ours, nil
		}}
		s := session(t, dial(t, "", through("zk.invalid:2181"), counter.use))
		must(t, ends[0].Close())
		must(t, s.Sync(t.Context()))
		if n := counter.calls.Load(); n != 2 {
			t.Errorf("%d connections, want one and another after the loss of the first", n)
		}
		up = false
		must(t, ends[1].Close())
		gone := time.Now()
		<-s.Context().Done()
		if took := time.Since(gone); took > s.Timeout() || took < s.Timeout()/2 {
			t.Errorf("the session ended %s after its server, its time-out is %s", took, s.Timeout())
		}
	})
}

// TestBarrierInABubble has two trees wait for one slow answer. Who waits for the other by a mutex
// stops the bubble's clock, and with it the answer.
func TestBarrierInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{seen: make(chan fakeCall, 100), told: make(chan int64, 100), syncs: time.Second}
		f.next.Store(1)
		pipes := &dialCounter{dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go f.serve(theirs)
			return ours, nil
		}}
		c := dial(t, "", through("zk.invalid:2181"), pipes.use)
		trees := []*recipe.Tree{follow(t, c, "/one", recipe.TreeOptions{}), follow(t, c, "/two", recipe.TreeOptions{})}
		must(t, trees[0].WaitSynced(t.Context()))
		must(t, trees[1].WaitSynced(t.Context()))
		began := time.Now()
		must(t, recipe.BarrierAll(t.Context(), trees...))
		if took := time.Since(began); took != time.Second {
			t.Errorf("a barrier over two trees of one session took %s, one answer takes 1s", took)
		}
	})
}

// A server that is at its connection limit closes each further connection at once.
func TestConnectionLimit(t *testing.T) {
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // of a test
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // as ZooKeeper does
		}
	}()
	client, err := recipe.Dial(recipe.Config{Servers: []string{server.Addr().String()}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := client.Session(ctx); err == nil || !strings.Contains(err.Error(), "maxClientCnxns") {
		t.Errorf("error %v", err)
	}
}
