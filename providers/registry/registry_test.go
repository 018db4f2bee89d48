package registry_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
)

// cloud is a provider that counts how often it was closed, and can tell of troubles.
type cloud struct {
	providers.Provider

	section configs.Provider
	told    func(error)
	mu      sync.Mutex
	closed  int
	failing error // what Close says
}

func (c *cloud) Tell(tell func(error)) { c.told = tell }

func (c *cloud) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return c.failing
}

func (c *cloud) closes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// sky opens clouds and remembers them.
type sky struct {
	mu     sync.Mutex
	opened []*cloud
	errs   []error // of the next openings
}

func (s *sky) open(section configs.Provider) (providers.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	c := &cloud{section: section}
	s.opened = append(s.opened, c)
	return c, nil
}

func (s *sky) all() []*cloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opened)
}

func section(name, region string) configs.Provider {
	return configs.Provider{Name: name, Region: region}
}

func config(sections ...configs.Provider) *configs.Config {
	return &configs.Config{Providers: sections}
}

func use(t *testing.T, r *registry.Registry, s configs.Provider) *registry.Lease {
	t.Helper()
	lease, err := r.Use(s)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// An opening for each user, and not for each section, would log in to a cloud once an
// upload; one for each name would share a cloud between two sections.
func TestASectionIsOpenedOnceForAllUsers(t *testing.T) {
	s := &sky{}
	r := registry.New(s.open, registry.Events{})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			lease, err := r.Use(section([]string{"north", "south"}[i%2], "here"))
			if err != nil {
				t.Error(err)
				return
			}
			if err := lease.Done(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	opened := s.all()
	if len(opened) != 2 || opened[0].section.Name == opened[1].section.Name || opened[0].closes()+opened[1].closes() > 0 {
		t.Errorf("opened %d times, or closed while it is wanted", len(opened))
	}
	if err := r.Close(); err != nil || opened[0].closes() != 1 || opened[1].closes() != 1 {
		t.Errorf("closed %d and %d times, %v", opened[0].closes(), opened[1].closes(), err)
	}
}

// A reload that closed a provider under its users would end uploads that go on; one that
// never closed it would leak connections.
func TestAProviderIsClosedAfterItsLastUser(t *testing.T) {
	s := &sky{}
	r := registry.New(s.open, registry.Events{})
	first, second := use(t, r, section("north", "old")), use(t, r, section("north", "old"))
	other := use(t, r, section("south", "same"))
	if err := r.Keep(config(section("north", "new"), section("south", "same"))); err != nil {
		t.Fatal(err)
	}
	third := use(t, r, section("north", "new"))
	clouds := s.all()
	old, same, fresh := clouds[0], clouds[1], clouds[2]
	old.failing = errors.New("connection lost")
	if err := errors.Join(first.Done(), first.Done(), third.Done(), other.Done()); err != nil || old.closes() > 0 {
		t.Fatalf("closed %d times while it is used, %v", old.closes(), err)
	}
	if err := second.Done(); !errors.Is(err, old.failing) || old.closes() != 1 {
		t.Errorf("after the last user: closed %d times, %v", old.closes(), err)
	}
	if same.closes()+fresh.closes() > 0 {
		t.Error("a provider is closed that is still configured")
	}
	// Without a reload in between the section that changed replaces the old one, too.
	use(t, r, section("north", "newer"))
	if fresh.closes() != 1 {
		t.Error("the provider of a section that has changed stays open unused")
	}
}

// An error that stayed would need a restart once the cloud is mended.
func TestAnOpeningThatFailedIsTriedAgain(t *testing.T) {
	refused := errors.New("wrong password")
	s := &sky{errs: []error{refused, refused}}
	var said []error
	r := registry.New(s.open, registry.Events{Opened: func(_ string, err error) { said = append(said, err) }})
	for range 2 {
		if _, err := r.Use(section("north", "")); !errors.Is(err, refused) || err.Error() != refused.Error() {
			t.Fatalf("use: %v", err)
		}
	}
	use(t, r, section("north", ""))
	use(t, r, section("north", ""))
	if want := []error{refused, refused, nil}; !slices.Equal(said, want) {
		t.Errorf("said %v, want %v", said, want)
	}
}

// A cloud that hangs while it is opened must hold up nobody who wants another.
func TestASlowOpeningHoldsUpNobodyElse(t *testing.T) {
	s, goOn := &sky{}, make(chan struct{})
	r := registry.New(func(p configs.Provider) (providers.Provider, error) {
		if p.Name == "slow" {
			<-goOn
		}
		return s.open(p)
	}, registry.Events{})
	done := make(chan error, 1)
	go func() {
		_, err := r.Use(section("slow", ""))
		done <- err
	}()
	use(t, r, section("quick", ""))
	if err := r.Keep(config(section("slow", ""), section("quick", ""))); err != nil {
		t.Error(err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Troubles of a provider that a reload has replaced would be shown as the new one's.
func TestOnlyTheCurrentProviderTells(t *testing.T) {
	s := &sky{}
	var said []string
	r := registry.New(s.open, registry.Events{Told: func(provider string, trouble error) {
		said = append(said, provider+": "+trouble.Error())
	}})
	use(t, r, section("north", "old"))
	use(t, r, section("north", "new"))
	for i, c := range s.all() {
		c.told([]error{errors.New("refused"), errors.New("unreachable")}[i])
	}
	if want := []string{"north: unreachable"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// A launcher gives its provider back at its end: kept open, it would be another's state
// after a reload.
func TestRetireClosesWithoutAReload(t *testing.T) {
	s := &sky{}
	r := registry.New(s.open, registry.Events{})
	first, second := use(t, r, section("north", "")), use(t, r, section("north", ""))
	_ = first.Retire()
	if s.all()[0].closes() > 0 {
		t.Fatal("closed under its second user")
	}
	third := use(t, r, section("north", ""))
	if len(s.all()) != 2 {
		t.Error("a retired provider is lent again")
	}
	_ = second.Done()
	_ = second.Retire()
	if s.all()[0].closes() != 1 || s.all()[1].closes() > 0 {
		t.Error("closed not once, or the wrong one")
	}
	if err := third.Retire(); err != nil || s.all()[1].closes() != 1 {
		t.Errorf("the second is not closed: %v", err)
	}
}

// Tries without a pause would have the cloud lock the account; pauses that do not end, a
// cloud stay unused that is mended; a wait that does not heed ctx, a daemon that hangs at
// its end.
func TestAwaitTriesAgainAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("wrong password")
		s := &sky{}
		for range 9 {
			s.errs = append(s.errs, refused)
		}
		r := registry.New(s.open, registry.Events{})
		var waits []time.Duration
		lease, err := r.Await(t.Context(), section("north", ""), func(err error, wait time.Duration) {
			if !errors.Is(err, refused) {
				t.Error(err)
			}
			waits = append(waits, wait)
		})
		if err != nil || lease.Provider != s.all()[0] || len(waits) != 9 {
			t.Fatalf("%v after %d failures", err, len(waits))
		}
		for i, wait := range waits {
			about := min(time.Second<<i, time.Minute)
			if wait < about*3/4 || wait > about*5/4+1 {
				t.Errorf("wait %d is %s, about %s expected", i+1, wait, about)
			}
		}
		s.errs = []error{refused}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := r.Await(ctx, section("south", ""), func(error, time.Duration) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Errorf("ended by %v", err)
		}
	})
}
