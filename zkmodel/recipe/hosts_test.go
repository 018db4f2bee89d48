package recipe

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
)

// TestHostsInTurn: every server is tried once a round, from wherever a round starts.
func TestHostsInTurn(t *testing.T) {
	t.Parallel()
	list := []string{"a:1", "b:1", "c:1"}
	h := newHosts(list, clock.Clock{}, nil)
	for range 4 {
		var round []string
		for range list {
			round = append(round, h.pick())
		}
		slices.Sort(round)
		if !slices.Equal(round, list) {
			t.Fatalf("a round was %v", round)
		}
	}
	h.set([]string{"d:1"})
	if h.pick() != "d:1" || h.has("a:1") || !h.has("d:1") {
		t.Errorf("after a change the list is %v", h.all())
	}
}

// TestHostsPause: the first round is tried at once, then pauses grow to a second;
// an accepted connection starts over if it lasted.
func TestHostsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts([]string{"a:1", "b:1"}, clock.Clock{}, nil)
		pause := func() time.Duration {
			start := time.Now()
			if err := h.pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		for range 2 {
			if p := pause(); p != 0 {
				t.Errorf("a pause of %s in the first round", p)
			}
		}
		for i := range 40 {
			full := min(firstPause<<min(i/2, 10), lastPause)
			if p := pause(); p < full/2 || p > full {
				t.Errorf("try %d after %s, want %s to %s", i, p, full/2, full)
			}
		}
		h.accepted()
		if p := pause(); p < firstPause/2 || p > firstPause {
			t.Errorf("a pause of %s after a success that did not last", p)
		}
		h.accepted()
		waitFor(t.Context(), clock.Clock{}, 2*lastPause)
		if p := pause(); p != 0 {
			t.Errorf("a pause of %s after a success that lasted", p)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for range 3 {
			_ = h.pause(ctx) // until one has to wait
		}
		if err := h.pause(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("pause after the end of its context: %v", err)
		}
	})
}

// TestHostProviderQuits: the library must be told to look whether it should quit
// once the session is over, and not before.
func TestHostProviderQuits(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	p := hostProvider{newHosts([]string{"a:1"}, clock.Clock{}, nil), over}
	if _, quit := p.Next(); quit || p.Len() != 1 {
		t.Error("told to quit in a living session")
	}
	close(over)
	if _, quit := p.Next(); !quit {
		t.Error("not told to quit")
	}
}

// Catches a warning of a connection that we have called off ourselves: a daemon that was told
// to stop would end with it.
func TestACalledOffConnectionHasNotFailed(t *testing.T) {
	var log bytes.Buffer
	c := &Client{log: hclog.New(&hclog.LoggerOptions{Output: &log})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	if c.failed("connect 127.0.0.1:1", err); err == nil || log.Len() > 0 {
		t.Errorf("%v, logged %q", err, &log)
	}
	if c.failed("connect 127.0.0.1:1", syscall.ECONNREFUSED); log.Len() == 0 {
		t.Error("a connection that was refused is not told")
	}
}

// Mistake: servers are tried in an order, or with pauses, that a Config's own source does not decide.
func TestHostsDrawFromTheirSource(t *testing.T) {
	t.Parallel()
	tried := func(seed uint64) (told []string) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			h := newHosts([]string{"a:1", "b:1", "c:1", "d:1"}, clock.Clock{}, rand.NewPCG(seed, 0))
			for range 20 {
				if err := h.pause(t.Context()); err != nil {
					t.Fatal(err)
				}
				told = append(told, h.pick()+" "+time.Since(began).String())
			}
		})
		return told
	}
	one := tried(1)
	if again := tried(1); !slices.Equal(one, again) {
		t.Errorf("one source, two orders:\n%v\n%v", one, again)
	}
	if other := tried(2); slices.Equal(one, other) {
		t.Errorf("two sources, one order: %v", one)
	}
}
