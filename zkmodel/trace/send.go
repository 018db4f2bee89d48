package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// sender sends lives that are over, some at a time, behind the daemon's back. How many of
// their spans may wait is limited: what is more is lost.
type sender struct {
	client  *collector
	about   *resourcepb.Resource
	encoder encoder
	losses  losses

	queue, batch   int // spans that may wait, and that are sent at once
	delay, timeout time.Duration

	mu      sync.Mutex
	waiting []*life
	spans   int // of them
	closed  bool

	wake, stop, done chan struct{}
	give             context.CancelFunc // up, what is being sent
}

// send makes a sender, and begins to send.
func send(client *collector, about *resource.Resource, told func(int, error)) *sender {
	var attributes encoder
	s := &sender{
		client: client, about: &resourcepb.Resource{Attributes: attributes.attributes(about.Attributes())}, losses: losses{told: told},
		queue: number("OTEL_BSP_MAX_QUEUE_SIZE", 8192), batch: number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 2048),
		delay: milliseconds("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second), timeout: milliseconds("OTEL_BSP_EXPORT_TIMEOUT", 30*time.Second),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.batch = min(s.batch, max(1, s.queue/2)) // what comes while a batch is sent has room
	ctx, give := context.WithCancel(context.Background())
	s.give = give
	go s.run(ctx)
	return s
}

// number is a number of the environment, by the variables of OpenTelemetry.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func milliseconds(name string, otherwise time.Duration) time.Duration {
	return time.Duration(number(name, int(otherwise.Milliseconds()))) * time.Millisecond
}

// errSlow is why spans are lost that nobody has tried to send.
var errSlow = errors.New("the collector takes them more slowly than they come: as many wait as may (OTEL_BSP_MAX_QUEUE_SIZE)")

// put has a life of so many spans sent.
func (s *sender) put(l *life, spans int) {
	s.mu.Lock()
	fits := !s.closed && (s.spans == 0 || s.spans+spans <= s.queue)
	if fits {
		s.waiting, s.spans = append(s.waiting, l), s.spans+spans
	}
	enough := s.spans >= s.batch
	s.mu.Unlock()
	if !fits {
		s.losses.lost(spans, 0, errSlow)
	}
	if enough {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// run sends until it is closed, and then what is left.
func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	for {
		least := 1
		select {
		case <-s.stop:
			for s.sendSome(ctx, 1) {
			}
			return
		case <-s.wake:
			least = s.batch
		case <-timer.C:
		}
		for s.sendSome(ctx, least) {
		}
		timer.Reset(s.delay)
	}
}

// sendSome sends a batch, if that many spans wait at least.
func (s *sender) sendSome(ctx context.Context, least int) bool {
	lives := s.take(least)
	if lives == nil {
		return false
	}
	e := &s.encoder
	e.reset()
	for _, l := range lives {
		e.life(l)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("the collector has not taken them within %s", s.timeout))
	defer cancel()
	err := s.client.send(ctx, &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   s.about,
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &common.InstrumentationScope{Name: scope}, Spans: e.out}},
	}}})
	s.losses.sent(len(e.out), err)
	return true
}

// take takes lives of a batch out of those that wait: whole ones.
func (s *sender) take(least int) []*life {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.spans < least {
		return nil
	}
	spans, n := 0, 0
	for n < len(s.waiting) && (n == 0 || spans+s.waiting[n].spans <= s.batch) {
		spans += s.waiting[n].spans
		n++
	}
	lives := s.waiting[:n:n]
	s.waiting, s.spans = s.waiting[n:], s.spans-spans
	return lives
}

// close sends what is left, until ctx ends.
func (s *sender) close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	before := s.losses.counted().lost()
	close(s.stop)
	select {
	case <-s.done:
	case <-ctx.Done():
		s.give()
		<-s.done
	}
	s.give()
	s.client.client.CloseIdleConnections()
	if lost := s.losses.counted().lost() - before; lost > 0 {
		return fmt.Errorf("%d spans are lost: %w", lost, s.losses.why())
	}
	return nil
}
