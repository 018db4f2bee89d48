package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"poolkeeper/configs/kit"
)

// PendingLock is a contender for a lock that nobody has locked before, to be made by
// one transaction together with other changes; see TakeAll.
type PendingLock struct {
	lock   *Lock
	prefix string
}

// Pending prepares to take the lock as part of a transaction.
func (l *Lock) Pending() *PendingLock {
	return &PendingLock{lock: l, prefix: kit.RandomHex(16) + l.mark}
}

// ops create the lock's directory and the contender in it. As the directory is
// new, so is the line: whoever makes both holds the lock.
func (p *PendingLock) ops() []Op {
	return []Op{
		OpCreate(p.lock.dir, nil, Persistent),
		OpCreate(p.lock.path(p.prefix), []byte(p.lock.identifier), Ephemeral|Sequential),
	}
}

// TakeAll applies ops as one transaction that also takes the locks of pending,
// all or nothing; the results are those of ops. An op on something below a lock
// must come before it. The loss of a lock that is held for less than a moment
// shows by its fence alone; the Context of one that is kept ends as always.
//
// ErrNodeExists says that a lock's directory is there already: Try it instead.
// After ErrConnectionLost the ops may have been applied, but no lock is held.
func TakeAll(ctx context.Context, s *Session, pending []*PendingLock, ops ...Op) ([]*Held, []OpResult, error) {
	all := slices.Clone(ops)
	for _, p := range pending {
		all = append(all, p.ops()...)
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	// An abandoned transaction would leave contenders that nobody knows of.
	results, err := runDetached(ctx, s, "take locks with", all[0].path,
		func() ([]OpResult, error) {
			results, _, err := s.multi(s.ctx, all)
			if errors.Is(err, ErrConnectionLost) {
				discardAll(s, pending)
			}
			return results, err
		},
		func(results []OpResult) {
			for _, r := range contenders(results, len(pending)) {
				s.discard(r)
			}
		})
	if err != nil {
		return nil, nil, err
	}
	held := make([]*Held, len(pending))
	for i, path := range contenders(results, len(pending)) {
		_, name := splitPath(path)
		held[i] = pending[i].lock.adopt(name)
	}
	return held, results[:len(ops)], nil
}

// contenders returns the paths of those that the last steps of a transaction made for n pending.
func contenders(results []OpResult, n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = results[len(results)-2*(n-i)+1].Path
	}
	return paths
}

// discardAll removes the contenders of a transaction whose answer was lost.
func discardAll(s *Session, pending []*PendingLock) {
	for _, p := range pending {
		name, err := p.lock.find(s.ctx, p.prefix)
		switch {
		case err != nil:
			p.lock.discardLost(p.prefix)
		case name != "":
			s.discard(p.lock.path(name))
		}
	}
}

// ReleaseAll gives locks up in one transaction with other changes, all or
// nothing: first before, then the locks, then after, which may remove their
// directories. ErrFenceLost says that a lock was lost and nothing was changed.
// If the connection breaks, locks that are gone afterwards are taken to be given up.
//
// ctx must not be bound to the locks, which end within the transaction.
func ReleaseAll(ctx context.Context, held []*Held, before, after []Op) error {
	if len(held) == 0 {
		return fmt.Errorf("release locks: %w: none", ErrBadPath)
	}
	ops := slices.Clone(before)
	for _, h := range held {
		if err := h.cause(); err != nil {
			return ended("release", h.path, err)
		}
		ops = append(ops, OpDelete(h.path, AnyVersion))
	}
	ops = append(ops, after...)
	defer holdEndings(held)()
	s := held[0].session
	for {
		_, at, err := s.multi(ctx, ops)
		switch lock := at - len(before); {
		case err == nil:
		case errors.Is(err, ErrConnectionLost):
			applied, rerr := gone(ctx, held)
			if rerr != nil {
				return rerr
			}
			if !applied {
				continue
			}
		case errors.Is(err, ErrNoNode) && lock >= 0 && lock < len(held):
			return fmt.Errorf("release %s: %w", held[lock].path, ErrFenceLost)
		default:
			return err
		}
		for _, h := range held {
			h.cancel(ErrReleased)
		}
		return nil
	}
}

// holdEndings holds what delays the news that contenders are gone, in the one
// order that all use, and returns what lets the news pass.
func holdEndings(held []*Held) (release func()) {
	held = slices.SortedFunc(slices.Values(held), func(a, b *Held) int { return strings.Compare(a.path, b.path) })
	for _, h := range held {
		h.ending <- struct{}{}
	}
	return func() {
		for _, h := range held {
			<-h.ending
		}
	}
}

// gone reports whether none of the contenders exists any more.
func gone(ctx context.Context, held []*Held) (bool, error) {
	s := held[0].session
	if err := s.Sync(ctx); err != nil {
		return false, err
	}
	for _, h := range held {
		_, exists, err := s.Exists(ctx, h.path)
		if err != nil || exists {
			return false, err
		}
	}
	return true, nil
}

// Rival returns when another stands in line for the lock, or ctx ends or the lock is lost,
// whose cause is then the error. A reader is no rival: neither another's, nor a writer's.
func (h *Held) Rival(ctx context.Context) error {
	ctx, cancel := h.Bind(ctx)
	defer cancel()
	dir, own := splitPath(h.path)
	for {
		n, err := h.session.childrenWatch(ctx, dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(n.children, func(name string) bool { return name != own && IsContender(name) }) {
			return nil
		}
		select {
		case <-n.watch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
