package presence

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Self is what the tree tells of this daemon.
type Self struct {
	registration *recipe.Registration // of the component, for all
	work         *recipe.Registration // of what it is at, for those who explain

	process *zkmodel.Process

	mu     sync.Mutex
	record zkmodel.Component
	state  string // of the session's work
}

// NewSelf makes one of a builder that is about to start. Its record describes the process; nil tells nothing.
func NewSelf(client *recipe.Client, hostname, version string, served *zkmodel.Strings, process *zkmodel.Process, work zkmodel.BuilderWork) *Self {
	s := &Self{process: process, record: zkmodel.Component{
		Hostname: hostname, Kind: zkmodel.KindBuilder, Knows: zkmodel.Strings{zkmodel.KnowsVerdicts},
		State: zkmodel.ComponentInitializing, Version: version, Providers: served,
	}, state: zkmodel.ComponentInitializing}
	s.registration = recipe.NewRegistration(client, zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder,
		s.record.Hostname, s.data())
	s.work = recipe.NewRegistration(client, zkmodel.BuilderWorkPath, s.record.Hostname+"-", work.Encode())
	return s
}

// data is the record. What keeps it from building is told before a pause.
func (s *Self) data() []byte {
	record := s.record
	s.process.Describe(&record)
	if s.record.Reason != "" {
		record.Reason = s.record.Reason
	}
	data, _ := record.Encode() // strings and numbers always encode
	return data
}

// Set changes the state of the work.
func (s *Self) Set(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	s.tell()
}

// Serve tells whom it serves by another configuration.
func (s *Self) Serve(served *zkmodel.Strings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Providers = served
	s.tell()
}

// Withdraw tells why nothing is built here, or by "" that it is.
func (s *Self) Withdraw(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Reason = why
	s.tell()
}

// tell writes the record. Who builds nothing although it runs is shown as paused.
func (s *Self) tell() {
	s.record.State = s.state
	if s.state == zkmodel.ComponentRunning && s.record.Reason != "" {
		s.record.State = zkmodel.ComponentPaused
	}
	s.registration.Set(s.data())
}

// Trouble notes why a provider cannot be used; nil is that it can.
func (s *Self) Trouble(provider string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := ""
	if err != nil {
		why = zkmodel.BriefTrouble(err.Error())
	}
	if s.record.Troubles[provider] == why {
		return
	}
	troubles := maps.Clone(s.record.Troubles)
	if troubles == nil {
		troubles = map[string]string{}
	}
	if troubles[provider] = why; why == "" {
		delete(troubles, provider)
	}
	s.keep(troubles)
}

// OnlyOf drops what is noted of other providers, and returns of which it is left.
func (s *Self) OnlyOf(names []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maps.Clone(s.record.Troubles)
	maps.DeleteFunc(left, func(name, _ string) bool { return !slices.Contains(names, name) })
	if len(left) != len(s.record.Troubles) {
		s.keep(left)
	}
	return slices.Collect(maps.Keys(left))
}

// keep writes troubles into the record. The caller holds the lock.
func (s *Self) keep(troubles map[string]string) {
	if len(troubles) == 0 {
		troubles = nil // leaves the key out
	}
	s.record.Troubles = troubles
	s.registration.Set(s.data())
}

// describe tells of the process.
func (s *Self) describe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
}

// At tells what the builder is at.
func (s *Self) At(w zkmodel.BuilderWork) { s.work.Set(w.Encode()) }

// Run keeps both in the tree until ctx ends.
func (s *Self) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.registration.Run(ctx) })
	group.Go(func() error { return s.work.Run(ctx) })
	group.Go(func() error { s.process.Follow(ctx, s.describe); return nil })
	return group.Wait()
}
