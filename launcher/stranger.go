package launcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// strangerAge is how long a request must have been as it is before its lock is looked
// at: a scheduler may hold it for a moment, to change a priority.
const strangerAge = time.Minute

// stubborn is after how many vain tries in a row a request is looked at.
const stubborn = 5

// tellStrangers says which requests nobody can serve, as their lock is held by a
// session that is no launcher's: a scheduler's, for instance, that lost its
// connection while it changed a priority. There is nothing that we may do, and
// without a word an operator could only guess.
func (s *shift) tellStrangers(ctx context.Context) error {
	stuck := slices.DeleteFunc(s.mirror.Requests(), func(r *zkmodel.Request) bool { return !s.isStuck(r) })
	if len(stuck) == 0 {
		return nil
	}
	pools, err := recipe.Members(ctx, s.store.Session(), zkmodel.ComponentsRoot+"/"+zkmodel.KindPool)
	if err != nil {
		return err
	}
	for _, r := range stuck {
		line, err := recipe.Contenders(ctx, s.store.Session(), zkmodel.RequestLockPath(r.ID))
		if err != nil {
			return err
		}
		if len(line) == 0 || slices.ContainsFunc(pools, func(m recipe.Member) bool { return m.Stat.EphemeralOwner == line[0].Session }) {
			continue
		}
		s.log.Warn("Request cannot be served: its lock is held by a session that is no launcher's; it goes on when that session lets go or ends",
			"request", r.ID, "state", r.State, "for", s.now().Sub(r.StateTime.Time()).Round(time.Second),
			"session", fmt.Sprintf("%#x", line[0].Session), "identifier", line[0].Identifier)
	}
	return nil
}

// isStuck tells whether something may keep us from a request for longer than usual.
func (s *shift) isStuck(r *zkmodel.Request) bool {
	if r.Broken != nil || s.now().Sub(r.StateTime.Time()) < strangerAge {
		return false
	}
	switch s.table.request(r.State) {
	case dutyReclaim:
		return !s.own.busy()[r.ID]
	case dutyAssign:
		return s.jobs.failures("request "+r.ID) >= stubborn
	}
	return false
}
