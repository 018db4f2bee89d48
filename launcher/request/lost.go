package request

import (
	"context"
	"slices"
	"time"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// FindOrphans looks for pending requests that nobody has locked: their launcher has
// died. It is asked when a launcher came or went, and now and then.
func (s *Server) FindOrphans(ctx context.Context) {
	s.orphans.Find(s.Tree.Requests(), s.Own.Requests(), s.launchedElsewhere(), func(r *zkmodel.Request) (bool, error) {
		locked, err := recipe.Locked(ctx, s.Store.Session(), zkmodel.RequestLockPath(r.ID))
		if err != nil && s.Store.Session().Context().Err() == nil {
			s.Troubled.Failed(s.Log, err, "Cannot tell whether a request is lost; the next look asks again", "request", r.ID, "event", r.EventID)
		}
		return locked, err
	})
}

// watchAfter is how long a request is pending before its lock is watched: most are served sooner.
const watchAfter = time.Second

// WatchLocks waits for the end of the locks that other launchers hold on pending requests. A request
// that is still pending then is an orphan: Nodepool's launchers unregister before they release their locks, so that
// FindOrphans may come too early. The time is when the next request has been pending for long enough.
func (s *Server) WatchLocks(ctx context.Context, snap *schedule.Snapshot) (again time.Time) {
	var known, theirs map[string]bool
	for _, r := range snap.Requests {
		if r.Broken != nil || r.State != zkmodel.RequestPending || snap.Busy[r.ID] {
			continue
		}
		if due := r.Stat.Mtime.Add(watchAfter - snap.Lag); due.After(snap.Now) {
			again = schedule.Earlier(again, due)
			continue
		}
		if known == nil {
			known, theirs = s.Lost(), s.launchedElsewhere()
		}
		if !known[r.ID] && !theirs[r.ID] {
			s.Jobs.Start(inflight.RequestLock(r.ID), func() error { return s.watchLock(ctx, r.ID) })
		}
	}
	return again
}

// watchLock marks a request as an orphan if it is still pending when its lock ends.
func (s *Server) watchLock(ctx context.Context, id string) error {
	if recipe.AwaitUnlocked(ctx, s.Store.Session(), zkmodel.RequestLockPath(id)) != nil {
		return nil //nolint:nilerr // the session ends
	}
	r, err := s.Store.Request(ctx, id)
	if err == nil && r.Broken == nil && r.State == zkmodel.RequestPending && !s.launchedElsewhere()[id] {
		s.markOrphan(id)
	}
	return nil // a request that could not be read is found by the next search
}

// Lost are the requests that nobody has locked, as far as was found.
func (s *Server) Lost() map[string]bool { return s.orphans.All() }

// launchedElsewhere holds the requests whose nodes are of providers that others
// serve and we do not: those others take them up.
func (s *Server) launchedElsewhere() map[string]bool {
	served := map[string]bool{}
	for _, c := range s.Tree.Components(zkmodel.KindPool) {
		served[c.ProviderName] = true
	}
	theirs := map[string]bool{}
	for _, n := range s.Tree.Nodes() {
		if n.AllocatedTo != "" && !parted(n) && s.Clouds[n.Provider] == nil && served[n.Provider] {
			theirs[n.AllocatedTo] = true
		}
	}
	return theirs
}

// parted tells whether a request goes on without a node, whose machine may yet be made.
func parted(n *zkmodel.Node) bool { return n.Unanswered() && !reap.InLaunch(n) }

// launchedByNodepool reports whether a launcher of Nodepool launches a node and is still registered: it ends the launch itself.
func (s *Server) launchedByNodepool(n *zkmodel.Node) bool {
	return reap.InLaunch(n) && slices.ContainsFunc(s.Tree.Components(zkmodel.KindPool), func(c *zkmodel.Component) bool {
		return c.ID == n.Launcher && c.OfNodepool()
	})
}

// markOrphan notes a request of our own that could not be brought to an end.
func (s *Server) markOrphan(id string) {
	s.orphans.Mark(id)
	s.Notify()
}
