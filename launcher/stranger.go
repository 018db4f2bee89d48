package launcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// strangerAge is how long a request must have been as it is before its lock is looked
// at: a scheduler may hold it for a moment, to change a priority.
const strangerAge = time.Minute

// stubborn is after how many vain tries a request is looked at.
const stubborn = 5

// mostNamed is how many requests of one stranger are named.
const mostNamed = 10

// tellStrangers says which requests nobody can serve, as their lock is held, at this
// look and at the last, by a session that is no launcher's: a scheduler's, for
// instance, that lost its connection while it changed a priority. There is nothing
// that we may do, and without a word an operator could only guess.
func (s *shift) tellStrangers(ctx context.Context) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			s.log.Debug("Cannot tell who holds the locks of requests; a later look tries again", "error", err)
		}
	}()
	last, busy := s.holders, s.own.busy()
	s.holders = map[string]recipe.Contender{}
	for _, r := range s.mirror.Requests() {
		if busy[r.ID] || !s.isStuck(r) {
			continue
		}
		line, err := recipe.Contenders(ctx, s.store.Session(), zkmodel.RequestLockPath(r.ID))
		if err != nil {
			return err
		}
		if len(line) > 0 {
			s.holders[r.ID] = line[0]
		}
	}
	held := map[int64][]string{} // requests by session
	for _, id := range slices.Sorted(maps.Keys(s.holders)) {
		if now := s.holders[id]; now.Name == last[id].Name {
			held[now.Session] = append(held[now.Session], id)
		}
	}
	if len(held) == 0 {
		return nil
	}
	// After the locks: a launcher that took one since has registered before.
	pools, err := recipe.Members(ctx, s.store.Session(), zkmodel.ComponentsRoot+"/"+zkmodel.KindPool)
	if err != nil {
		return err
	}
	for _, m := range pools {
		delete(held, m.Stat.EphemeralOwner)
	}
	for session, ids := range held {
		s.log.Warn("Requests cannot be served: their locks are held by a session that is no launcher's; they go on when it lets go or ends",
			"session", fmt.Sprintf("%#x", session), "identifier", s.holders[ids[0]].Identifier,
			"count", len(ids), "requests", ids[:min(len(ids), mostNamed)])
	}
	return nil
}

// isStuck tells whether something may keep us from a request for longer than usual.
func (s *shift) isStuck(r *zkmodel.Request) bool {
	if r.Broken != nil || s.now().Sub(r.StateTime.Time()) < strangerAge {
		return false
	}
	d := s.table.request(r.State)
	return d == dutyReclaim || d == dutyAssign && s.jobs.failures("request "+r.ID) >= stubborn
}
