//go:build linux

package dib

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		lease, grace  time.Duration // from 100 s on; 0 is none
		at            time.Duration
		closing, over bool
	}{
		"for ever":                         {at: 1000 * s},
		"lease goes on":                    {lease: 10 * s, at: 9 * s},
		"lease ends soon":                  {lease: 10 * s, at: 10*s - HasteGrace, closing: true},
		"lease is over":                    {lease: 10 * s, at: 10 * s, closing: true, over: true},
		"asked to end":                     {grace: 4 * s, at: 3 * s},
		"grace is over":                    {grace: 4 * s, at: 4 * s, over: true},
		"asked to end, lease ends first":   {lease: 2 * s, grace: 4 * s, at: 2 * s, closing: true, over: true},
		"asked to end, grace is over":      {lease: 9 * s, grace: 4 * s, at: 4 * s, over: true},
		"asked to end, lease ends shortly": {lease: 2 * s, grace: 4 * s, at: 2*s - 1, closing: true},
	} {
		t.Run(name, func(t *testing.T) {
			var l Limits
			l.Renew(100*s, c.lease)
			if c.grace > 0 {
				l.Ask(100*s, c.grace)
				l.Ask(101*s, c.grace) // a second reason gives no more time
			}
			if now := 100*s + c.at; l.Closing(now) != c.closing || l.Over(now) != c.over {
				t.Errorf("closing %v, over %v", l.Closing(now), l.Over(now))
			}
		})
	}
}

// Whatever ends a build first, the lease's end is its end.
func TestLeaseCountsAfterAnotherReason(t *testing.T) {
	r := newRun(t, `trap '' TERM
touch "$OUT/up"
while :; do sleep 0.02; done`)
	r.Grace = time.Minute
	until := new(atomic.Pointer[time.Time])
	r.Lease = func() time.Duration {
		if end := until.Load(); end != nil {
			return time.Until(*end)
		}
		return 3 * time.Second
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for !exists(r.Dir + "/up") {
			pause()
		}
		end := time.Now().Add(time.Second)
		until.Store(&end)
		cancel(errors.New("the builder stops"))
	}()
	_, err := r.Do(ctx)
	if late := time.Since(*until.Load()); !errors.Is(err, ErrStopped) || late > 20*time.Second {
		t.Errorf("%s after the end of the lease: %v", late, err)
	}
	nothingLeft(t, r)
}
