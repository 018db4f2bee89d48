package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// writers is how many requests are accepted or declined at once.
const writers = 256

// retirePause is between two barriers of what is done.
const retirePause = 10 * time.Millisecond

// secondLook is how long after the first the second look for lost requests is.
const secondLook = 5 * time.Second

// grace is how long a request that we could serve is left to the launcher that
// is to take it first.
const grace = 500 * time.Millisecond

// allProviders names the one quota lock of sites that limit tenants; no provider
// can be called so.
const allProviders = "*"

// shift is the work of a launcher within one session of ZooKeeper. One goroutine
// looks and decides; what takes time runs as jobs, one a record.
type shift struct {
	*Launcher
	store *zkmodel.Store
	site  string // the installation, which our machines carry
	log   hclog.Logger
	jobs  *jobs
	own   *ledger // nodes and requests in our hands
	// tenures are the locks of the providers' quotas, by provider.
	tenures map[string]*tenure

	images []*zkmodel.Image // as of the last change; the looking goroutine's

	// The looking goroutine's: since when others may take requests first, and idle
	// nodes that were told to go.
	since   map[string]time.Time
	evicted map[string]time.Time
	members map[string]bool // the pools that were registered
	lag     time.Duration   // of our clock behind ZooKeeper's
	// forsaken holds the requests that everybody has declined, and since when.
	forsaken map[string]time.Time

	// holders are those of the locks of requests that are stuck, as of the last look;
	// of the job that looks, which runs once at a time.
	holders map[string]recipe.Contender

	mu   sync.Mutex
	lost map[string]bool // pending requests that were found unlocked
}

func newShift(l *Launcher, store *zkmodel.Store) *shift {
	s := &shift{
		Launcher: l, store: store, log: l.log, jobs: newJobs(l.now, l.notify),
		own: newLedger(), lost: map[string]bool{}, evicted: map[string]time.Time{}, tenures: map[string]*tenure{},
	}
	for name := range l.clouds {
		path := zkmodel.QuotaLockPath(name)
		if len(l.cfg.TenantLimits) > 0 {
			path = zkmodel.QuotaLockPath(allProviders) // tenants are counted over all
		}
		s.tenures[name] = &tenure{
			lock:    recipe.NewLock(store.Session(), path, l.deps.FQDN, recipe.EnsureParents()),
			barrier: l.mirror.Barrier, jobs: s.jobs,
		}
		if len(l.cfg.TenantLimits) > 0 {
			for other := range l.clouds {
				s.tenures[other] = s.tenures[name]
			}
			break
		}
	}
	return s
}

// run works until ctx ends, with the session or with the program.
func (s *shift) run(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	f := s.follow()
	defer f.close()
	if err := s.awaitRegistered(ctx, f); err != nil {
		return err
	}
	if err := s.mirror.Barrier(ctx); err != nil { // shows all that the last session left
		return fmt.Errorf("read the tree: %w", err)
	}
	s.log.Info("Serving requests", "pools", len(s.pools))
	s.jobs.spawn(func() { s.retire(ctx) })
	s.serving.Store(true)
	s.loop(ctx, f)
	s.serving.Store(false)
	s.endTenures(ctx) // nobody need wait for them until our jobs are over
	s.jobs.wait()
	s.endTenures(ctx) // won in the meantime
	s.mirror.Resume(s.own.names())
	return nil
}

// endTenures gives the locks of the quotas back.
func (s *shift) endTenures(ctx context.Context) {
	parting, done := s.parting(ctx)
	defer done()
	for _, t := range s.tenures {
		t.end(parting)
	}
}

// prepare makes the folders that records and locks are created in, and learns the
// name of the installation.
func (s *shift) prepare(ctx context.Context) error {
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot} {
		if err := s.store.Session().EnsurePath(ctx, path); err != nil {
			return fmt.Errorf("prepare the tree: %w", err)
		}
	}
	var err error
	s.site, err = s.store.SiteID(ctx)
	return err
}

// loop looks at the tree whenever it changes and does what is to be done.
func (s *shift) loop(ctx context.Context, f *follower) {
	// The duties look for what nothing tells of. They do so again soon, as what was
	// ours before may not have been given up when we began.
	resync, every := s.now(), min(s.deps.Resync, secondLook)
	for {
		s.looking.Store(s.now().UnixNano())
		f.take()
		if f.imagesChanged {
			s.images, f.imagesChanged = s.mirror.Images(), false
		}
		if now := s.now(); f.membersChanged || !now.Before(resync) {
			if f.membersChanged = false; s.membersLeft() || !now.Before(resync) {
				s.findLost(ctx)
			}
			if !now.Before(resync) {
				s.jobs.start("strangers", func() error { return s.tellStrangers(ctx) })
				resync = now.Add(every)
				every = s.deps.Resync
			}
		}
		began := s.now()
		snap, again := s.observe()
		rest := s.now().Sub(began) // as long as it took, so that a burst leaves time to act
		again = earlier(again, s.decide(ctx, snap), s.sweep(ctx, snap), resync)
		s.looking.Store(0)
		if !pause(ctx, rest) || !f.wait(ctx, s.wake, again.Sub(s.now())) {
			return
		}
	}
}

// decide assigns the waiting requests and carries the decisions out. It returns
// when all are written, so that the next look counts what they use, and with the
// time from which on it may decide otherwise.
func (s *shift) decide(ctx context.Context, snap *Snapshot) time.Time {
	decisions := Assign(snap)
	s.last.Store(&decisions)
	var group errgroup.Group
	group.SetLimit(writers)
	since, again := map[string]time.Time{}, time.Time{}
	uncounted := map[string]bool{}
	for _, d := range decisions {
		again = earlier(again, d.Again)
		if !d.Since.IsZero() {
			since[d.Request.ID] = d.Since
		}
		if d.Uncounted {
			uncounted[d.Pool.Provider] = true
		}
		for _, id := range d.Evict {
			s.evicted[id] = snap.Now
			s.jobs.start("node "+id, func() error { return s.evict(ctx, id) })
		}
		if act := s.action(d); act != nil && s.own.hold(d.Request.ID) {
			group.Go(func() error {
				if err := act(ctx, d); err != nil {
					s.own.drop(d.Request.ID)
					s.postpone(ctx, d, err)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // never an error
	for id, first := range s.since {
		if snap.Busy[id] { // left alone for a moment; its grace goes on
			since[id] = first
		}
	}
	s.since = since
	again = earlier(again, s.showPools(decisions))
	for name, t := range s.tenures {
		t.yield(ctx)
		if uncounted[name] {
			t.want(ctx)
		}
	}
	return again
}

// action is what carries a decision out; nil is nothing.
func (s *shift) action(d Decision) func(context.Context, Decision) error {
	switch d.Verdict {
	case Accept:
		return s.accept
	case Decline:
		return s.decline
	case Reclaim:
		return s.reclaim
	case Wait, Leave:
	}
	return nil
}

// postpone leaves a request alone for a moment after an error.
func (s *shift) postpone(ctx context.Context, d Decision, err error) {
	if ctx.Err() != nil {
		return
	}
	level := hclog.Warn
	if errors.Is(err, ErrTaken) {
		level = hclog.Debug
	}
	wait := s.jobs.failed("request "+d.Request.ID, shortPause)
	s.log.Log(level, "Request is left alone for a moment",
		"request", d.Request.ID, "verdict", d.Verdict, "error", err, "retry", wait)
}

// retire lets go of what is done, as soon as the mirror shows how it ended. One
// barrier serves all that has gathered; in a burst it is a moment until the next.
func (s *shift) retire(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.own.done:
		}
		requests, nodes := s.own.takeDone()
		rest := retirePause
		if err := s.mirror.Settle(ctx, requests, nodes); err == nil {
			s.own.forget(requests, nodes)
			s.notify()
		} else if ctx.Err() == nil {
			s.log.Warn("Cannot see how requests ended; they stay ours for a moment", "requests", len(requests), "error", err)
			s.own.finishAll(requests, nodes)
			rest = shortPause
		}
		if !pause(ctx, rest) {
			return
		}
	}
}

// pause returns after a while; it is false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// taken turns what happens when somebody else was faster into ErrTaken.
func taken(err error) error {
	if errors.Is(err, recipe.ErrLocked) || errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("%w: %w", ErrTaken, err)
	}
	return err
}

// earlier is the first of some times; a zero time is none.
func earlier(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || (!t.IsZero() && t.Before(first)) {
			first = t
		}
	}
	return first
}
