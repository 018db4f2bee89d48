package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/launcher/presence"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// Service is a launcher whose configuration can change: it runs a Launcher, and
// for another configuration another one in its place. The new one takes over
// what the old one had in hand, as it would after a crash; so a reload can do
// whatever a restart can, without losing the session or the view of the tree.
type Service struct {
	deps Deps

	mu      sync.Mutex
	current *Launcher
	next    *Launcher
	end     context.CancelFunc // of current; nil while it does not run
}

// NewService checks what it is given and makes a Service. Nothing happens before
// Run.
func NewService(cfg *configs.Config, deps Deps) (*Service, error) {
	if deps.Client == nil {
		return nil, errors.New("make launcher: a client is required")
	}
	if deps.Now == nil {
		deps.Now = deps.Client.Clock().Now
	}
	if deps.Mirror == nil {
		deps.Mirror = newMirror(deps)
	}
	if deps.Process == nil {
		deps.Process = zkmodel.NewProcess(deps.Now) // all launchers of the Service are one
	}
	deps.Kept = presence.NewKept(deps.Client, presence.Host{Name: deps.Hostname, Version: deps.Version})
	l, err := New(cfg, deps)
	if err != nil {
		return nil, err
	}
	return &Service{deps: deps, current: l}, nil
}

// Tree is the view of images, nodes, requests and components, for those who show
// it.
func (s *Service) Tree() *zkmodel.Mirror { return s.deps.Mirror }

// Config is the configuration that the launcher works by.
func (s *Service) Config() *configs.Config { return s.now().cfg }

// HasImage tells whether the configuration has an image, or leaves it out because of
// a mistake.
func (s *Service) HasImage(image string) bool { return s.now().cfg.HasImage(image) }

// Ready is nil while requests are served, or says why not.
func (s *Service) Ready() error { return s.now().Ready() }

// Pause has the launcher take no request any more, for a reason, until it is paused with
// "". Requests that it has taken, the stock, and deletions go on.
func (s *Service) Pause(why string) {
	s.deps.Process.Pause(why)
	s.now().notify()
}

// InHand says what this launcher works at, "" is nothing, and whether that is known: of a
// paused one only, once it has looked at the requests.
func (s *Service) InHand() (what string, known bool) { return s.now().InHand() }

// Finish reports whether a launcher that is paused has nothing in hand: it then takes
// nothing, as long as it is paused.
func (s *Service) Finish() bool {
	what, known := s.InHand()
	return known && what == ""
}

// Check asks the launcher for a sign of life, until ctx ends.
func (s *Service) Check(ctx context.Context) error { return s.now().Check(ctx) }

// Decisions are those of the last look at the requests, with their reasons.
func (s *Service) Decisions() []schedule.Decision { return s.now().Decisions() }

// Requests are those of the tree; those that wait tell why.
func (s *Service) Requests() []*zkmodel.Request { return s.now().Requests() }

func (s *Service) now() *Launcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Reload goes on with another configuration. It returns when that is known to
// be usable; launches under way go on.
func (s *Service) Reload(cfg *configs.Config) error {
	l, err := New(cfg, s.deps)
	if err != nil {
		return fmt.Errorf("reload %s: %w", cfg.Path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = l
	if s.end != nil {
		s.end()
	}
	return nil
}

// Run serves requests until ctx ends. It returns nil when ctx has ended.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(clock.With(ctx, s.deps.Client.Clock()))
	group.Go(func() error { return s.deps.Mirror.Run(ctx) })
	kept, release := context.WithCancel(context.WithoutCancel(ctx)) // the record goes last
	group.Go(func() error { return s.deps.Kept.Hold(kept) })
	group.Go(func() error {
		defer release()
		for ctx.Err() == nil {
			running, end := context.WithCancel(ctx)
			l := s.begin(end)
			err := l.Run(running)
			end()
			if err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// begin is the launcher to be run from now on, and how it is ended.
func (s *Service) begin(end context.CancelFunc) *Launcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		s.current, s.next = s.next, nil
	}
	s.end = end
	return s.current
}
