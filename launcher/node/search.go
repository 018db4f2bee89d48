package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// How long after one search for a machine the next one is, at first and at last.
const (
	firstSearch = 250 * time.Millisecond
	lastSearch  = 5 * time.Second
)

// Search looks for the machines of a node whose creation the cloud did not answer.
type Search struct {
	Node string // its id
	// List lists them, and Left says for how long yet the cloud may make one.
	List func(ctx context.Context) ([]string, error)
	Left func() time.Duration
	// Moved is closed when another provider takes the request; nil never is.
	Moved <-chan struct{}
	// Tell is called once, if the first look finds none.
	Tell func(left time.Duration) error
}

// Run searches until there is a machine, or none can come any more. It ends with ctx,
// and when another provider takes the request: then it fails with
// providers.ErrUnanswered.
func (s Search) Run(ctx context.Context) ([]string, error) {
	told := false
	for pause := firstSearch; ; pause = min(2*pause, lastSearch) {
		left := s.Left() // before the list is read
		ids, err := s.List(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case len(ids) > 0 || err == nil && left <= 0:
			return ids, nil
		case err != nil && (left <= 0 || !errors.Is(err, providers.ErrTransient) && !errors.Is(err, providers.ErrUnusable)):
			return nil, err
		case !told:
			told = true
			if err := s.Tell(left); err != nil {
				return nil, err
			}
		}
		timer := clock.NewTimer(ctx, max(0, min(pause, left)))
		select {
		case <-timer.C:
		case <-s.Moved:
			timer.Stop()
			return nil, fmt.Errorf("node %s: %w; another provider takes its request", s.Node, providers.ErrUnanswered)
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// Searches are those under way, by request.
type Searches struct {
	mu  sync.Mutex
	all map[string]*searches
}

// searches are those of one request.
type searches struct {
	moved chan struct{} // closed when another provider takes the request
	nodes int
}

// Begin gives the channel that closes when another provider would take a request; done
// says that the search for one of its nodes is over.
func (s *Searches) Begin(request string) (moved <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*searches{}
	}
	k := s.all[request]
	if k == nil {
		k = &searches{moved: make(chan struct{})}
		s.all[request] = k
	}
	k.nodes++
	return k.moved, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.nodes--; k.nodes == 0 && s.all[request] == k {
			delete(s.all, request)
		}
	}
}

// End ends the searches of requests that are taken elsewhere.
func (s *Searches) End(elsewhere func(request string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.all {
		if elsewhere(id) {
			close(k.moved)
			delete(s.all, id)
		}
	}
}
