package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
)

// troubles is what a provider told, in its order.
type troubles struct {
	mu   sync.Mutex
	told []string
	some chan struct{}
}

func listen(p *Provider) *troubles {
	l := &troubles{some: make(chan struct{}, 100)}
	p.Tell(func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, text(err))
		l.some <- struct{}{}
	})
	return l
}

func (l *troubles) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) == 0 {
		return ""
	}
	return l.told[len(l.told)-1]
}

// What keeps a cloud from being used is told at the first failure, while the call
// goes on being repeated, and so is the end of it.
func TestTroubleIsToldBeforeTheCallEnds(t *testing.T) {
	for name, c := range map[string]struct {
		match, says string
		fault       func(*stub) func(http.ResponseWriter, *http.Request) bool
	}{
		"no answer":    {"/identity", "does not answer", func(*stub) func(http.ResponseWriter, *http.Request) bool { return hangUp }},
		"not there":    {"/identity", "answers 503", func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(503) }},
		"Nova is away": {"/compute", "does not answer", func(*stub) func(http.ResponseWriter, *http.Request) bool { return hangUp }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			p := s.open(t, section())
			p.pace.total = time.Minute
			heard := listen(p)
			s.fail(c.match, 100_000, c.fault(s))
			done := make(chan error, 1)
			go func() {
				_, err := p.ListNodes(t.Context())
				done <- err
			}()
			select {
			case <-heard.some:
			case err := <-done:
				t.Fatalf("nothing was told until the call ended with %v", err)
			}
			if got := heard.last(); !strings.Contains(got, c.says) || !strings.Contains(got, s.Listener.Addr().String()) {
				t.Errorf("told %q, want %q and the address", got, c.says)
			}
			s.calm()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := heard.last(); got != "" {
				t.Errorf("when it works, told %q", got)
			}
		})
	}
}

// One answer of a service that works otherwise is no trouble, nor is a call that its
// caller gave up.
func TestWhatIsNoTrouble(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := listen(p)
	s.fail("/compute", 1, answer(500))
	s.fail("/compute", 1, answer(409))
	_, _ = p.Limits(t.Context(), nil)
	if len(heard.told) > 0 {
		t.Errorf("told %q", heard.told)
	}
}

// A log-in that fails says nothing of what was to be asked: no server is gone because
// auth_url is wrong, no label is faulty because the account is locked.
func TestLoginIsNoAnswer(t *testing.T) {
	for status, says := range map[int]string{
		400: "cloud cannot be used", 401: "refuses our credentials", 403: "cloud cannot be used", 404: "auth_url leads to no identity service",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newStub(t)
			p := s.open(t, section())
			heard := listen(p)
			s.fail("/identity", 100_000, answer(status))
			_, labels := p.NodeResources(t.Context(), "main", "small")
			for what, err := range map[string]error{
				"DeleteNode":    p.DeleteNode(t.Context(), "11111111-2222-4333-8444-555555555555"),
				"DeleteImage":   p.DeleteImage(t.Context(), "11111111-2222-4333-8444-555555555555"),
				"NodeResources": labels,
			} {
				if err == nil || errors.Is(err, providers.ErrNotFound) || errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), says) {
					t.Errorf("%s gave %v, want %q", what, err, says)
				}
			}
			if got := heard.last(); !strings.Contains(got, says) {
				t.Errorf("told %q, want %q", got, says)
			}
		})
	}
	t.Run("Nova's address is wrong", func(t *testing.T) {
		s := newStub(t)
		p := s.open(t, section())
		s.fail("/compute", 100_000, answer(404))
		if err := p.DeleteNode(t.Context(), "11111111-2222-4333-8444-555555555555"); !errors.Is(err, providers.ErrUnusable) {
			t.Errorf("DeleteNode gave %v", err)
		}
	})
}

// A service that failed once and is not asked again is forgotten while the cloud works.
func TestOldTroubleIsForgotten(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	clock := &settable{now: time.Now()}
	p.health.now = clock.read
	heard := listen(p)
	p.health.note("neutron:9696", errors.New("connection refused"))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "connection refused"}, {time.Minute, "connection refused"}, {time.Minute, ""}} {
		clock.move(c.after)
		if _, err := p.Limits(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := heard.last(); got != c.want {
			t.Errorf("told %q, want %q", got, c.want)
		}
	}
}

// The first failure is logged at once with its cause, those that follow ever less
// often, and the end.
func TestTroubleIsLogged(t *testing.T) {
	var log strings.Builder
	clock := &settable{now: time.Now()}
	h := newHealth(hclog.New(&hclog.LoggerOptions{Output: &log}))
	h.now = clock.read
	lines := func() int { return strings.Count(log.String(), "\n") }
	h.note("keystone:5000", errors.New("connection refused"))
	if lines() != 1 || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("at first:\n%s", log.String())
	}
	for range 3600 { // an hour, tried every second
		clock.move(time.Second)
		h.note("keystone:5000", errors.New("connection refused"))
	}
	if n := lines(); n < 9 || n > 12 { // 10, 20, 40 … 600 s
		t.Errorf("%d lines in an hour, want about 11", n)
	}
	h.note("keystone:5000", nil)
	h.note("keystone:5000", nil)
	if !strings.HasSuffix(strings.TrimSpace(log.String()), "what=keystone:5000") || strings.Count(log.String(), "can be used again") != 1 {
		t.Errorf("in the end:\n%s", log.String())
	}
}
