package singleton

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// foreignLockAge is how long a request must have been as it is before its lock is
// looked at: a scheduler may hold it for a moment, to change a priority.
const foreignLockAge = time.Minute

// mostNamed is how many requests of one session are named.
const mostNamed = 10

// ForeignLockRequests shows the requests in the tree.
type ForeignLockRequests interface {
	Requests() []*zkmodel.Request
}

// LockFolders reads who holds locks.
type LockFolders interface {
	// Children are the names right below a path; recipe.ErrNoNode when it is not there.
	Children(ctx context.Context, path string) ([]string, error)
	// Contenders are those for a lock; the first holds it.
	Contenders(ctx context.Context, lock string) ([]recipe.Contender, error)
	// LauncherSessions are those that have registered pools.
	LauncherSessions(ctx context.Context) (map[int64]bool, error)
}

// ForeignLocks says which requests nobody can serve, as their lock is held, at this
// pass and at the last, by a session that is no launcher's: a scheduler's, for
// instance, that lost its connection while it changed a priority. There is nothing
// that we may do, and without a word an operator could only guess.
type ForeignLocks struct {
	requests ForeignLockRequests
	log      hclog.Logger
	now      func() time.Time

	holders map[string]recipe.Contender // by request, at the last pass
}

// NewForeignLocks makes a ForeignLocks.
func NewForeignLocks(requests ForeignLockRequests, log hclog.Logger, now func() time.Time) *ForeignLocks {
	return &ForeignLocks{requests: requests, log: log, now: now}
}

// Pass looks once. An error is told, and the next pass tries again.
func (f *ForeignLocks) Pass(ctx context.Context, locks LockFolders) {
	if err := f.pass(ctx, locks); err != nil && ctx.Err() == nil {
		f.log.Debug("Cannot tell who holds the locks of requests; a later look tries again", "error", err)
	}
}

func (f *ForeignLocks) pass(ctx context.Context, locks LockFolders) error {
	last := f.holders
	f.holders = map[string]recipe.Contender{}
	folders, err := folderNames(ctx, locks)
	if err != nil {
		return err
	}
	for _, r := range f.requests.Requests() {
		if !f.stands(r) || !folders[r.ID] {
			continue
		}
		line, err := locks.Contenders(ctx, zkmodel.RequestLockPath(r.ID))
		if err != nil {
			return err
		}
		if len(line) > 0 {
			f.holders[r.ID] = line[0]
		}
	}
	held := map[int64][]string{} // requests by session
	for _, id := range slices.Sorted(maps.Keys(f.holders)) {
		if now := f.holders[id]; now.Name == last[id].Name {
			held[now.Session] = append(held[now.Session], id)
		}
	}
	if len(held) == 0 {
		return nil
	}
	// After the locks: a launcher that took one since has registered before.
	launchers, err := locks.LauncherSessions(ctx)
	if err != nil {
		return err
	}
	for session, ids := range held {
		if launchers[session] {
			continue
		}
		f.log.Warn("Requests cannot be served: their locks are held by a session that is no launcher's; they go on when it lets go or ends",
			"session", fmt.Sprintf("%#x", session), "identifier", f.holders[ids[0]].Identifier,
			"count", len(ids), "requests", ids[:min(len(ids), mostNamed)])
	}
	return nil
}

// stands reports whether a request has been for long in a state that launchers are to
// take it out of.
func (f *ForeignLocks) stands(r *zkmodel.Request) bool {
	return r.Broken == nil && f.now().Sub(r.StateTime.Time()) >= foreignLockAge &&
		(r.State == zkmodel.RequestRequested || r.State == zkmodel.RequestPending)
}

// folderNames are the requests that were ever locked.
func folderNames(ctx context.Context, locks LockFolders) (map[string]bool, error) {
	names, err := locks.Children(ctx, zkmodel.LocksRoot)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, err
	}
	folders := make(map[string]bool, len(names))
	for _, name := range names {
		folders[name] = true
	}
	return folders, nil
}
