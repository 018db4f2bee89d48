package openstack

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/providers"
)

// settable is a clock that a test moves.
type settable struct {
	mu  sync.Mutex
	now time.Time
}

func (c *settable) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *settable) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A cloud that refuses our credentials is asked one at a time, ever less often,
// by all providers of a process together, and at once when they change.
func TestRefusedCredentialsAreNotTriedAgainAndAgain(t *testing.T) {
	s := newStub(t)
	env := s.clouds(t, "")
	path, _ := env("OS_CLIENT_CONFIG_FILE")
	clock, logins := &settable{now: time.Now()}, &Logins{}
	var all []*Provider
	for range 3 {
		p := s.openWith(t, section(), env)
		p.logins, p.now = logins, clock.read
		all = append(all, p)
	}
	asked := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refusals
	}
	s.mu.Lock()
	s.password = "another"
	s.mu.Unlock()
	everybody := func() {
		var group sync.WaitGroup
		for _, p := range all {
			for range 5 {
				group.Go(func() {
					if _, err := p.ListNodes(t.Context()); !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "refuses our credentials") {
						t.Errorf("ListNodes gave %v", err)
					}
				})
			}
		}
		group.Wait()
	}
	everybody()
	if n := asked(); n != 1 {
		t.Errorf("15 calls at once: %d log-ins, want 1", n)
	}
	for range 600 { // ten minutes, asked every second
		clock.move(time.Second)
		_, _ = all[0].ListNodes(t.Context())
	}
	if n := asked(); n < 5 || n > 7 { // 15, 30, 60 … 300 s
		t.Errorf("%d log-ins in ten minutes, want about 6", n)
	}
	s.writeClouds(t, path, "another", "")
	for _, p := range all {
		if _, err := p.ListNodes(t.Context()); err != nil {
			t.Errorf("with the new password: %v", err)
		}
	}
}

// A caller that gives up does not wait for the others' log-in, and its giving up
// is no refusal.
func TestLoginsHeedTheirCallers(t *testing.T) {
	var l Logins
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- l.do(t.Context(), "account", time.Now, func() error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.do(impatient, "account", time.Now, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if err := l.do(t.Context(), "another", time.Now, func() error { return nil }); err != nil {
		t.Errorf("another account waits: %v", err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
