// Package registry keeps providers open: one for each section of the configuration, for
// as long as somebody uses it. Builder and launcher open their clouds through it.
package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// Opener opens the provider of a section (providers/drivers.Process.Open).
type Opener func(configs.Provider) (providers.Provider, error)

// Events are told of the provider that is the one of its name, one at a time. They must
// return at once, without calling the registry. Each may be nil.
type Events struct {
	// Opened is told how each opening ended: with nil, or why it failed.
	Opened func(provider string, err error)
	// Told is told what an open provider tells of its cloud (providers.Teller).
	Told func(provider string, trouble error)
}

// Registry is the open providers of one daemon. Its methods may be called from many
// goroutines at once.
type Registry struct {
	open   Opener
	events Events

	mu      sync.Mutex
	current map[string]*entry // by name of the provider
}

// New makes a registry in which nothing is open.
func New(open Opener, events Events) *Registry {
	return &Registry{open: open, events: events, current: map[string]*entry{}}
}

// Use opens the provider of a section, or takes the one that is open; one that was opened
// for another section of the same name is closed once its users are done. A provider
// that opens slowly holds up only those who want it.
//
// Errors: the opener's; the next call tries again.
func (r *Registry) Use(section configs.Provider) (*Lease, error) {
	e, replaced := r.enter(section)
	_ = replaced.close() // what cannot be closed is of no use either
	e.once.Do(func() { r.start(e) })
	if e.err != nil {
		return nil, errors.Join(e.err, r.leave(e, true))
	}
	return &Lease{Provider: e.provider, registry: r, entry: e}, nil
}

// Await is Use, tried again until it succeeds or ctx ends, at growing intervals. It calls
// failed after each failure, with the wait before the next try.
//
// Errors: ctx's.
func (r *Registry) Await(ctx context.Context, section configs.Provider, failed func(err error, wait time.Duration)) (*Lease, error) {
	for retry := newBackOff(); ; {
		lease, err := r.Use(section)
		if err == nil {
			return lease, nil
		}
		wait := retry.NextBackOff()
		failed(err, wait)
		if err := clock.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// Keep closes the providers that a configuration no longer has, or has otherwise, each
// when its last user is done with it.
//
// Errors: those of the providers that it closed itself.
func (r *Registry) Keep(cfg *configs.Config) error {
	r.mu.Lock()
	var unused []*entry
	for name, e := range r.current {
		if section, ok := cfg.Provider(name); !ok || !e.section.Equal(section) {
			delete(r.current, name)
			unused = append(unused, e.retire())
		}
	}
	r.mu.Unlock()
	var err error
	for _, e := range unused {
		err = errors.Join(err, e.close())
	}
	return err
}

// Close is Keep of nothing.
func (r *Registry) Close() error { return r.Keep(&configs.Config{}) }
