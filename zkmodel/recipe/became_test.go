package recipe_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: what became of a write whose answer was lost is asked of a server that has not caught up, as its sync was refused: what is there
// is then not there; or a look that is refused is taken for a lock that is lost.
func TestWhatBecameOfAWriteIsSureOrTold(t *testing.T) {
	t.Parallel()
	ours := func([]byte) bool { return true }
	for name, c := range map[string]struct {
		write, refused int // the request whose answer is lost, and which one behind it is refused: the sync is the first
		prepare        func(*place)
		call           func(*place) error
	}{
		"set":                             {1, 1, holds, func(p *place) error { _, err := p.held.Set(p.ctx, "/r", []byte("new"), 0); return err }},
		"set, and the lock is looked for": {1, 3, holds, func(p *place) error { _, err := p.held.Set(p.ctx, "/r", []byte("new"), 0); return err }},
		"create unique":                   {1, 1, holds, func(p *place) error { _, err := p.held.CreateUnique(p.ctx, "/r/u", nil, ours); return err }},
		"lock": {1, 1, func(p *place) { must(p.t, p.b.EnsurePath(p.ctx, "/r/lock")) }, func(p *place) error {
			_, err := recipe.NewLock(p.s, "/r/lock", "a").Acquire(p.ctx)
			return err
		}},
		"release": {1, 1, holds, func(p *place) error { return recipe.ReleaseAll(p.ctx, []*recipe.Held{p.held}, nil, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t, c.prepare)
				p.cluster.AtRequest("a", c.write, func() { p.cluster.AtRequest("a", c.refused, nil, zookeeper.Refused) }, zookeeper.Unanswered)
				err := c.call(p)
				if !p.cluster.Stopped("a") {
					t.Error("nothing was refused")
				}
				if want(t, err, recipe.ErrAuth); errors.Is(err, recipe.ErrFenceLost) {
					t.Errorf("the lock is said to be lost: %v", err)
				}
				p.rest()
			})
		})
	}
}

// Mistake: locks that a transaction has taken, whose answer was lost, stay, as nobody knows of them.
func TestLocksOfALostAnswerGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		p.cluster.AtRequest("a", 1, nil, zookeeper.Unanswered)
		_, _, err := recipe.TakeAll(p.ctx, p.s, []*recipe.PendingLock{recipe.NewLock(p.s, "/r/old/lock", "a").Pending(), recipe.NewLock(p.s, "/r/lock", "a").Pending()})
		want(t, err, recipe.ErrConnectionLost)
		p.rest()
		if names := p.line(); len(names) > 0 {
			t.Errorf("%v stay", names)
		}
	})
}
