package launcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/canary"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/presence"
	"poolkeeper/launcher/reaper"
	"poolkeeper/launcher/request"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/shared"
	"poolkeeper/launcher/supply"
	"poolkeeper/launcher/validate"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// secondLook is how long after the first the second look for lost requests is.
const secondLook = 5 * time.Second

// longestRest is how long a launcher rests after a look at most: one that was stopped in the middle of it, or whose
// clock was put right, would rest for as long again.
const longestRest = time.Second

// grace is how long a request that we could serve is left to the launcher that
// is to take it first.
const grace = 500 * time.Millisecond

// session is the work of a launcher within one session of ZooKeeper. One goroutine
// looks and decides; what takes time runs as jobs, one a record.
type session struct {
	*Launcher
	store    *zkmodel.Store
	log      hclog.Logger
	jobs     *inflight.Jobs
	own      *inflight.Records // nodes and requests in our hands
	launches *launch.Launches
	requests *request.Server
	reaper   *reaper.Reaper
	trials   *validate.Validator
	canaries *canary.Keeper
	quotas   inflight.Quotas

	images []*zkmodel.Image // as of the last change; the looking goroutine's

	// The looking goroutine's: since when others may take requests first.
	since map[string]time.Time
	peers presence.Peers
	// What was said of builds when that was logged last.
	toldVerdicts map[place]string
	waiting      bool // there were requests to be decided over
}

func newSession(l *Launcher, store *zkmodel.Store) *session {
	s := &session{
		Launcher: l, store: store, log: l.log, jobs: inflight.NewJobs(l.now, l.notify),
		own: inflight.NewRecords(l.mirror, l.log, l.notify), toldVerdicts: map[place]string{},
	}
	lock := func(name string) func(context.Context) (inflight.Held, error) {
		return acquire(recipe.NewLock(store.Session(), zkmodel.QuotaLockPath(name), l.deps.FQDN, recipe.EnsureParents()))
	}
	s.quotas = inflight.NewQuotas(slices.Collect(maps.Keys(l.clouds)), len(l.cfg.TenantLimits) > 0, lock, l.barrier, s.jobs)
	return s
}

// acquire is how a lock is waited for.
func acquire(lock *recipe.Lock) func(context.Context) (inflight.Held, error) {
	return func(ctx context.Context) (inflight.Held, error) {
		held, err := lock.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return held, nil
	}
}

// run works until ctx ends, with the session or with the program.
func (s *session) run(ctx context.Context) error {
	s.attends.Enter(presence.WaitTree)
	defer s.attends.Enter(presence.WaitSession)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	if err := s.refusals.WaitSynced(ctx); err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	f := s.follow()
	defer f.close()
	f.take()
	s.attends.Enter(presence.WaitRegister)
	if err := s.self.Await(ctx, s.mirror, f.change); err != nil {
		return err
	}
	if err := errors.Join(s.mirror.Barrier(ctx), s.offers.Barrier(ctx)); err != nil { // show all that the last session left
		return fmt.Errorf("read the tree: %w", err)
	}
	s.log.Info("Serving requests", "pools", len(s.pools))
	s.jobs.Spawn(func() { s.own.Retire(ctx) })
	s.attends.Enter(presence.Serving)
	s.loop(ctx, f)
	s.attends.Enter(presence.WaitSession)
	s.endQuotaLocks(ctx) // nobody need wait for them until our jobs are over
	s.jobs.Wait()
	s.endQuotaLocks(ctx) // taken in the meantime
	s.own.End()
	return nil
}

// endQuotaLocks gives the locks of the quotas back.
func (s *session) endQuotaLocks(ctx context.Context) {
	cleanup, done := inflight.Cleanup(ctx, s.store.Session())
	defer done()
	s.quotas.End(cleanup)
}

// barrier returns when we see all that was written before of nodes and refusals.
func (l *Launcher) barrier(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.mirror.Barrier(ctx) })
	group.Go(func() error { return l.refusals.Barrier(ctx) })
	return group.Wait()
}

// prepare makes the folders that records and locks are created in, and learns the
// name of the installation.
func (s *session) prepare(ctx context.Context) error {
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot, zkmodel.LaunchesRoot} {
		if err := s.store.Session().EnsurePath(ctx, path); err != nil {
			return fmt.Errorf("prepare the tree: %w", err)
		}
	}
	site, err := s.store.SiteID(ctx)
	if err != nil {
		return err
	}
	for name, c := range s.clouds {
		c.OfInstallation(site)
		if s.backing[name] != nil {
			c.OnBacking(s.knownBacking(name, s.store))
		}
	}
	s.furnish(site)
	return s.clock.Read(ctx, s.store, s.log)
}

// furnish makes the rooms that do the work on records. site is the installation.
func (s *session) furnish(site string) {
	finder := node.Finder{
		Site: site, LaunchOf: s.store.LaunchOf, Now: func() time.Time { return s.now().Add(s.ahead()) },
	}
	teacher := &shared.Teacher{Records: s.store, Nodes: s.own.Nodes, Now: s.now, Log: s.log}
	book := canary.New(canary.Deps{Store: s.store, Config: s.cfg, Image: s.mirror.Image, Host: s.deps.FQDN, Now: s.now, Ahead: s.ahead, Log: s.log})
	s.canaries = &canary.Keeper{
		Book: book, Store: s.store.WithCanaries(true), Config: s.cfg, Tree: s.mirror, Jobs: s.jobs, Now: s.now, Ahead: s.ahead, Log: s.log,
	}
	s.launches = launch.New(launch.Deps{
		Store: s.store, Config: s.cfg, Own: s.own, Jobs: s.jobs, Image: s.mirror.Image, Pools: s.pools, Clouds: s.clouds,
		Scanner: s.scanner, Boots: s.boots, Book: book, Finder: finder,
		Teacher: teacher, Quotas: s.quotas, Log: s.log, Tried: s.metrics.Tried, Step: s.deps.Step,
		Notify: s.notify, Now: s.now, Ahead: s.ahead,
	})
	s.requests = request.New(request.Deps{
		Store: s.store, Config: s.cfg, Own: s.own, Jobs: s.jobs, Quotas: s.quotas, Tree: s.mirror, Offers: s.offers,
		Pools: s.pools, Clouds: s.clouds, Launches: s.launches, Log: s.log, Troubled: &s.tells.requests, Figures: s.metrics,
		Tracer: s.deps.Tracer, Step: s.deps.Step, Notify: s.notify, Now: s.now, Ahead: s.ahead,
	})
	clouds := map[string]reaper.Cloud{}
	for name, c := range s.clouds {
		clouds[name] = c
	}
	s.reaper = reaper.New(reaper.Deps{
		Store: s.store, Config: s.cfg, Own: s.own, Jobs: s.jobs, Tree: s.mirror, Request: s.mirror.Request, Clouds: clouds, Stock: s.stocked(),
		Launch: s.launches, Finder: finder, Judged: s.judgedNow, Drained: s.drained, Rival: s.rival, Book: book, Log: s.log, Refused: &s.tells.nodes, Deleted: s.metrics.Deleted, Step: s.deps.Step,
		Now: s.now,
	})
	s.trials = validate.New(validate.Deps{
		Store: s.store, Config: s.cfg, Own: s.own, Jobs: s.jobs, Quotas: s.quotas, Tree: s.mirror, Image: s.mirror.Image, Pools: s.pools,
		Clouds: s.clouds, Scanner: s.scanner, Site: site, Teacher: teacher, Remover: s.reaper, Secrets: s.deps.Secrets, Name: s.deps.FQDN, Paused: s.deps.Process.Paused, Hold: s.deps.Process.Hold,
		Check: s.deps.Check, Log: s.log, Step: s.deps.Step, Notify: s.notify, Now: s.now, Ahead: s.ahead,
	})
}

// loop looks at the tree whenever it changes and does what is to be done.
func (s *session) loop(ctx context.Context, f *follower) {
	// The duties look for what nothing tells of. They do so again soon, as what was
	// ours before may not have been given up when we began.
	resync, every := s.now(), min(s.deps.Resync, secondLook)
	for {
		s.looking.Store(s.now().Add(lookLimit + s.store.Session().Timeout()).UnixNano())
		f.take()
		changed := f.imagesChanged || f.membersChanged || f.canariesChanged
		f.canariesChanged = false
		if f.imagesChanged {
			s.images, f.imagesChanged = s.mirror.Images(), false
			s.tellVerdicts()
			s.followTrials()
		}
		if now := s.now(); f.membersChanged || !now.Before(resync) {
			if f.membersChanged = false; s.peers.Left(s.mirror.Components(zkmodel.KindPool)) || !now.Before(resync) {
				s.requests.FindOrphans(ctx)
			}
			if !now.Before(resync) {
				s.jobs.Start(inflight.Task("clock"), func() error { return s.clock.Read(ctx, s.store, s.log) })
				resync = now.Add(every)
				every = s.deps.Resync
			}
		}
		decided := s.deps.Deciding(ctx)
		if ctx.Err() != nil { // another configuration runs in our place by now
			decided()
			return
		}
		began := s.now()
		snap, again := s.observe(ctx)
		rest := min(s.now().Sub(began), longestRest) // as long as it took, so that a burst leaves time to act
		again = schedule.Earlier(again, s.requests.WatchLocks(ctx, snap), s.decide(ctx, snap), s.reaper.Due(ctx, snap), s.canaries.Look(ctx, snap.Nodes, changed), resync)
		decided()
		s.looking.Store(0)
		if clock.Sleep(ctx, rest) != nil || !f.wait(ctx, s.wake, again.Sub(s.now())) {
			return
		}
	}
}

// decide assigns the waiting requests and carries the decisions out. It returns
// when all are written, so that the next look counts what they use, and with the
// time from which on it may decide otherwise.
func (s *session) decide(ctx context.Context, snap *schedule.Snapshot) time.Time {
	s.launches.MoveOn(snap)
	parting := s.launches.Part(ctx, snap)
	paused := s.deps.Process.Paused()
	if paused == "" {
		s.inHand.Store(nil)
	}
	decisions := schedule.Paused(schedule.Assign(snap), paused)
	s.last.Store(&decisions)
	supply.ShowWants(s.clouds, decisions)
	s.waiting = len(decisions) > 0
	out := schedule.Follows(snap, decisions)
	s.since = out.Since
	marked := s.reaper.MakeRoom(ctx, out.Evict, snap.Now)
	s.requests.CarryOut(ctx, decisions)
	quotas, due := s.trials.Consider(ctx, snap) // after all requests
	for _, name := range append(quotas, parting...) {
		out.Quotas[name] = true
	}
	marked() // the launcher that has the quota next must see what goes, or makes more go
	again := schedule.Earlier(out.Again, due, s.self.Show(decisions, s.view))
	s.quotas.EndRound(ctx, out.Quotas)
	if paused != "" {
		s.tellInHand()
	}
	return again
}

// tellInHand says what a paused launcher still works at.
func (s *session) tellInHand() {
	var list []string
	for _, work := range []struct {
		what string
		n    int
	}{{"requests", len(s.own.Requests())}, {"trials of uploads", s.trials.InHand()}} {
		if work.n > 0 {
			list = append(list, fmt.Sprintf("%s: %d", work.what, work.n))
		}
	}
	now := strings.Join(list, ", ")
	s.inHand.Store(&now)
}

// view is how a provider looks at the moment: while we are paused, as one that cannot be
// used, so that other launchers leave us no requests.
func (s *session) view(provider string) supply.View {
	v := s.clouds[provider].View()
	v.Held = v.Held || s.deps.Process.Paused() != ""
	return v
}
