package openstack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

func TestRate(t *testing.T) {
	s := newStub(t)
	cfg := section()
	cfg.Rate = 20 * time.Millisecond
	p := s.open(t, cfg)
	start := time.Now()
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if _, err := p.NodeResources(t.Context(), "main", "small"); err != nil {
				t.Error(err)
			}
			if err := p.DeleteImage(t.Context(), netPublic); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	// One log-in, one list of flavors, five deletions: six waits.
	if took := time.Since(start); took < 6*cfg.Rate {
		t.Errorf("7 calls took %s at a rate of one in %s", took, cfg.Rate)
	}
	limiter := p.login.current().door.limiter
	limiter.SetLimit(rate.Every(time.Hour)) // however long this host has paused
	limiter.Allow()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.DeleteImage(ctx, netPublic); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose turn does not come in time gave %v", err)
	}
}

// A cloud that asks us to wait is left alone for as long, and no longer.
func TestRetryAfter(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.fail("DELETE", 1, answer(429, "Retry-After", "1"))
	start := time.Now()
	if err := p.DeleteImage(t.Context(), netPublic); err != nil || time.Since(start) < time.Second {
		t.Errorf("DeleteImage: %v after %s", err, time.Since(start))
	}
	// A refusal that asks for a pause is a matter of the moment, and no call to the service goes out before.
	image := upload(t, p)
	s.fail("GET /compute/v2.1/servers", 100, answer(403, "Retry-After", "3600"))
	_, err := p.ListNodes(t.Context())
	if !errors.Is(err, providers.ErrTransient) || providers.PauseOf(err) < 59*time.Minute {
		t.Errorf("ListNodes: %v, pause %s", err, providers.PauseOf(err))
	}
	s.calm()
	if _, err := p.CreateNode(t.Context(), nodeSpec(image)); !errors.Is(err, providers.ErrTransient) || providers.PauseOf(err) < 59*time.Minute {
		t.Errorf("CreateNode: %v, pause %s", err, providers.PauseOf(err))
	}
	p = s.open(t, section())
	// Longer than a call may take in all: the daemon decides.
	s.fail("DELETE", 1, answer(429, "Retry-After", "3600"))
	start = time.Now()
	if err := p.DeleteImage(t.Context(), netPublic); !errors.Is(err, providers.ErrTransient) || time.Since(start) > time.Second {
		t.Errorf("DeleteImage: %v after %s", err, time.Since(start))
	}
}

// A request that may have been acted upon is repeated only where that does no
// harm.
func TestRepeatable(t *testing.T) {
	door := newTransport(nil, 0, quick(), hclog.NewNullLogger())
	for _, c := range []struct {
		method, path string
		ctx          context.Context
		status       int
		again        bool
	}{
		{"GET", "/x", t.Context(), 500, true},
		{"GET", "/x", t.Context(), 404, false},
		{"GET", "/x", t.Context(), 409, false},
		{"DELETE", "/x", t.Context(), 503, true},
		{"POST", "/servers", t.Context(), 500, false},
		{"POST", "/servers", t.Context(), 503, false},
		{"POST", "/servers", t.Context(), 429, true},
		{"POST", "/images", repeating(t.Context()), 502, true},
		{"POST", "/v3/auth/tokens", t.Context(), 504, true},
	} {
		req, err := http.NewRequestWithContext(c.ctx, c.method, "http://host"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = door.judge(req, &http.Response{StatusCode: c.status, Header: http.Header{}, Body: http.NoBody}, nil)
		if (err != nil) != c.again {
			t.Errorf("%s %s after %d: %v, want a repetition: %t", c.method, c.path, c.status, err, c.again)
		}
	}
}

func TestMessageOf(t *testing.T) {
	long := strings.Repeat("ä ", 500)
	for body, want := range map[string]string{
		`{"forbidden": {"code": 403, "message": "Quota exceeded"}}`:              "Quota exceeded",
		`{"NeutronError": {"type": "x", "message": "No more IP", "detail": ""}}`: "No more IP",
		`{"message": "plain"}`: "plain",
		`{"error": "text"}`:    `{"error": "text"}`,
		"<html>\n <head>\n  <title>409 Conflict</title>\n </head>\n <body>\n  <h1>409 Conflict</h1>\n  in use<br /><br />\n\n\n\n </body>\n</html>": "in use",
		"": "",
	} {
		if got := messageOf([]byte(body)); got != want {
			t.Errorf("%s\nsays %q, want %q", body, got, want)
		}
	}
	if got := messageOf([]byte(long)); len(got) > 510 || !strings.HasSuffix(got, "ä …") {
		t.Errorf("a long message is cut to %d bytes: …%q", len(got), got[len(got)-10:])
	}
}

// Who waits for what somebody else is asking gets that answer; who is called off
// does not take the others along.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cached[int]
		c.age = time.Minute
		asked := 0
		slow := func(ctx context.Context) (int, error) {
			asked++
			if err := clock.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			return 7, nil
		}
		first, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := c.get(first, time.Now, slow); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first one got %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			group.Go(func() {
				if got, err := c.get(t.Context(), time.Now, slow); got != 7 || err != nil {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		group.Wait()
		if asked != 2 {
			t.Errorf("asked %d times, want 2", asked)
		}
		if err := clock.Sleep(t.Context(), 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := c.get(t.Context(), time.Now, slow); err != nil || asked != 3 {
			t.Errorf("after its age it was asked %d times in all, %v", asked, err)
		}
	})
}

func TestRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := 0
		r := roster{list: func(ctx context.Context) ([]server, error) {
			read++
			return []server{{ID: "a"}}, clock.Sleep(ctx, time.Second)
		}}
		first, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := r.since(first, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first one got %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			group.Go(func() {
				if c, err := r.since(t.Context(), time.Now()); err != nil || c.servers["a"] == nil {
					t.Errorf("got %+v, %v", c, err)
				}
			})
		}
		group.Wait()
		if read != 2 {
			t.Errorf("21 questions read the list %d times, want 2", read)
		}
		if _, err := r.since(t.Context(), time.Now().Add(-time.Minute)); err != nil || read != 2 {
			t.Errorf("an old list would have done, it was read %d times, %v", read, err)
		}
		if _, err := r.since(t.Context(), time.Now()); err != nil || read != 3 {
			t.Errorf("a new list was wanted, it was read %d times, %v", read, err)
		}
	})
}

// A hundred launches among thousands of servers cost a list now and then, and no
// call of their own; the longer the list, the rarer it is read.
func TestManyWaitForFewLists(t *testing.T) {
	s := newStub(t)
	s.boot = 300 * time.Millisecond
	const others, ours = 3000, 100
	for range others {
		s.addServer(map[string]any{"name": "other", "metadata": map[string]any{}, "flavorRef": "1"})
	}
	ids := make([]string, ours)
	for i := range ids {
		ids[i], _ = s.addServer(map[string]any{"name": "ours", "metadata": map[string]any{}, "flavorRef": "1"}).fields["id"].(string)
	}
	p := s.open(t, section())
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			if _, err := p.WaitNode(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	pages, single := s.count("GET /compute/v2.1/servers/detail"), s.count("GET /compute/v2.1/servers/")
	if single -= pages; single > 0 || pages > ours {
		t.Errorf("%d waits cost %d pages of lists and %d calls for one server", ours, pages, single)
	}
	if cost := p.roster.cost(); cost <= 0 || p.pollAfter(0) < cost {
		t.Errorf("a list that takes %s is read every %s", cost, p.pollAfter(0))
	}
}

// At the edge of the quota one creation goes at a time, before it many.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, inside, most, alone := 4, 0, 0, 0
		var mu sync.Mutex
		g := newGate(func(context.Context) (providers.Resources, error) {
			return providers.Resources{providers.Instances: free}, nil
		})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				leave, err := g.enter(t.Context(), providers.Resources{providers.Instances: 1})
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				mu.Lock()
				inside++
				most = max(most, inside)
				if free == 0 {
					alone = max(alone, inside)
				}
				mu.Unlock()
				_ = clock.Sleep(t.Context(), time.Second) // Nova
				mu.Lock()
				inside--
				free = max(free-1, 0)
				mu.Unlock()
			})
		}
		group.Wait()
		if most != 4 || alone != 1 {
			t.Errorf("at most %d went together, %d when all was taken; want 4 and 1", most, alone)
		}
	})
}
