// Package dispatch is what one daemon of all does with the log of events: it sends them to
// the site's sinks, and keeps the log within its bounds.
package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// ElectionPath elects the dispatcher among all daemons of a site.
const ElectionPath = event.Root + "/election"

// trimEvery is how often the log is looked at for what is too much of it.
const trimEvery = time.Minute

// Options say what is done with events.
type Options struct {
	Keep int           // entries that are kept at most
	Age  time.Duration // how long
	// Sinks get the events.
	Sinks []Sink
	// Left are sinks that get nothing now, as something is wrong with them, and keep their
	// places; LeftOthers says that there may be more, of names that are not known.
	Left       []string
	LeftOthers bool
}

// Has reports whether there is a sink of a name, if it gets anything now or not.
func (o *Options) Has(sink string) bool {
	return slices.Contains(o.Left, sink) || slices.ContainsFunc(o.Sinks, func(s Sink) bool { return s.Name == sink })
}

// Deps is what a Service is given. Client, Writer, Member and Logger are required.
type Deps struct {
	Client *recipe.Client
	// Writer is the source of this process's events, Member its name in the election.
	Writer, Member string
	Logger         hclog.Logger
	// Hold, when set, notes that this process dispatches events, until what it returns is called.
	Hold      func(path string) (release func())
	Now       func() time.Time
	TrimEvery time.Duration // 0 is a minute
	Retries   kit.Backoff   // pauses between tries; the zero value is a second to a minute
}

// Service is a daemon's part in events: while it has Options, the daemon's changes are
// told, and it stands for election.
type Service struct {
	deps    Deps
	log     hclog.Logger
	metrics *metrics

	beside []func(context.Context)

	mu      sync.Mutex
	options *Options
	changed chan struct{} // closed when options change
}

// New makes a Service without options.
func New(deps Deps) *Service {
	if deps.Hold == nil {
		deps.Hold = func(string) func() { return func() {} }
	}
	if deps.Now == nil {
		deps.Now = deps.Client.Clock().Now
	}
	if deps.TrimEvery == 0 {
		deps.TrimEvery = trimEvery
	}
	if deps.Retries == (kit.Backoff{}) {
		deps.Retries = retries
	}
	s := &Service{deps: deps, log: deps.Logger.Named("events"), changed: make(chan struct{})}
	s.metrics = newMetrics(deps.Client)
	return s
}

// Beside has something else done while there are options, until its context ends; it is to
// be called before Run. A Service that is nil does nothing.
func (s *Service) Beside(run func(ctx context.Context)) {
	if s != nil {
		s.beside = append(s.beside, run)
	}
}

// Set goes on with other options; nil tells of nothing from now on, and does nothing.
func (s *Service) Set(options *Options) {
	switch {
	case options == nil:
		s.deps.Client.SetLog(nil)
	case s.deps.Client.Log() == nil:
		s.deps.Client.SetLog(recipe.NewLog(event.Root, s.deps.Writer))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options = options
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Service) now() (*Options, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options, s.changed
}

// Run does a dispatcher's work whenever this process is elected, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	for ctx.Err() == nil {
		options, changed := s.now()
		running, end := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.serve(running, options)
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		end()
		<-done
	}
}

// serve stands for election with some options.
func (s *Service) serve(ctx context.Context, options *Options) {
	if options == nil {
		return
	}
	var others sync.WaitGroup
	defer others.Wait()
	for _, run := range s.beside {
		others.Go(func() { run(ctx) })
	}
	for ctx.Err() == nil {
		err := recipe.NewElection(s.deps.Client, ElectionPath, s.deps.Member).Run(ctx, func(ctx context.Context, h *recipe.Held) error {
			s.metrics.leads(true)
			defer s.metrics.leads(false)
			defer s.deps.Hold(ElectionPath)()
			s.log.Info("This daemon dispatches events")
			return s.lead(ctx, h, *options)
		})
		if ctx.Err() != nil || errors.Is(err, recipe.ErrClosed) {
			return
		}
		s.log.Warn("Events are not dispatched; it is tried again", "error", err)
		select {
		case <-clock.After(ctx, time.Second):
		case <-ctx.Done():
		}
	}
}

// lead is a dispatcher's work. A sink whose work ends, as a write was refused, begins anew.
func (s *Service) lead(ctx context.Context, h *recipe.Held, options Options) error {
	log := s.deps.Client.Log()
	if log == nil {
		return nil // the options are being changed
	}
	s.metrics.forget()
	sinks, err := s.place(ctx, h, log, options)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, sink := range sinks {
		logger := s.log.With("sink", sink.Name)
		group.Go(func() {
			for failures := 1; ctx.Err() == nil; failures++ {
				d := delivery{sink: sink, log: log, held: h, logger: logger, metrics: s.metrics, retries: s.deps.Retries}
				if err := d.run(ctx); err != nil && ctx.Err() == nil {
					logger.Warn("Events of a sink are not dispatched; it is tried again", "error", err)
				}
				_ = clock.Sleep(ctx, s.deps.Retries.After(failures)) // or ctx has ended, which is looked at
			}
		})
	}
	for {
		if err := s.trim(ctx, h, options); err != nil && ctx.Err() == nil {
			s.log.Warn("Old events are not deleted; it is tried again", "error", err, "retry", s.deps.TrimEvery)
		}
		select {
		case <-clock.After(ctx, s.deps.TrimEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// place gives all sinks their places in the log, and removes those of sinks that are no
// more: should one with the name come again, it begins with what is new then. What rights
// refuse is of one sink alone. It returns the sinks that have a place.
func (s *Service) place(ctx context.Context, h *recipe.Held, log *recipe.Log, options Options) ([]Sink, error) {
	names := slices.Clone(options.Left)
	for _, sink := range options.Sinks {
		names = append(names, sink.Name)
	}
	consumers, err := log.Consumers(ctx, h.Session())
	if err != nil && !recipe.Unreadable(err) {
		return nil, err
	}
	for _, name := range consumers {
		if slices.Contains(names, name) || options.LeftOthers {
			continue
		}
		err := log.ForgetCursor(ctx, h, name)
		switch {
		case recipe.Unreadable(err):
			s.log.Warn("The place of a sink that is no more cannot be removed; it stays", "sink", name, "error", err)
		case err != nil:
			return nil, err
		}
	}
	err = log.Begin(ctx, h, names[len(options.Left):]...)
	if !recipe.Unreadable(err) {
		return options.Sinks, err
	}
	var placed []Sink
	for _, sink := range options.Sinks {
		err := log.Begin(ctx, h, sink.Name)
		switch {
		case err == nil:
			placed = append(placed, sink)
		case recipe.Unreadable(err):
			s.log.Error("A sink gets nothing, as its place in the log cannot be written", "sink", sink.Name, "error", err)
		default:
			return nil, err
		}
	}
	return placed, nil
}

// trim keeps the log within its bounds.
func (s *Service) trim(ctx context.Context, h *recipe.Held, options Options) error {
	log := s.deps.Client.Log()
	if log == nil {
		return nil
	}
	dropped, err := log.Trim(ctx, h, int64(options.Keep), s.deps.Now().Add(-options.Age))
	s.metrics.dropped(dropped)
	return errors.Join(err, trimLetters(ctx, h))
}
