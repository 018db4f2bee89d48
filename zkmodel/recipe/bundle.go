package recipe

import (
	"context"
	"errors"
	"fmt"
)

// Bid is a contender for a lock that nobody has locked before, to be made by
// one transaction together with other changes; see TakeAll.
type Bid struct {
	lock   *Lock
	prefix string
}

// Bid prepares to take the lock as part of a transaction.
func (l *Lock) Bid() *Bid { return &Bid{lock: l, prefix: randomHex() + lockMark} }

// ops create the lock's directory and the contender in it. As the directory is
// new, so is the line: whoever makes both holds the lock.
func (b *Bid) ops() []Op {
	return []Op{
		OpCreate(b.lock.dir, nil, Persistent),
		OpCreate(b.lock.path(b.prefix), []byte(b.lock.identifier), Ephemeral|Sequential),
	}
}

// TakeAll applies ops as one transaction that also takes the locks of bids,
// all or nothing; the results are those of ops. An op on something below a lock
// must come before it.
//
// ErrNodeExists says that a lock's directory is there already: Try it instead.
// After ErrConnectionLost the ops may have been applied, but no lock is held.
func TakeAll(ctx context.Context, s *Session, bids []*Bid, ops ...Op) ([]*Held, []OpResult, error) {
	all := append([]Op{}, ops...)
	for _, b := range bids {
		all = append(all, b.ops()...)
	}
	// An abandoned transaction would leave contenders that nobody knows of, so
	// it is awaited for as long as the session lives.
	results, err := await(ctx, s, func(ctx context.Context) ([]OpResult, error) {
		results, _, err := s.multi(ctx, all)
		if err != nil {
			if errors.Is(err, ErrConnectionLost) {
				discardAll(s, bids)
			}
			return nil, err
		}
		return results, nil
	}, func(results []OpResult) {
		for i := range bids {
			s.discard(results[len(ops)+2*i+1].Path)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	held := make([]*Held, len(bids))
	for i, b := range bids {
		_, name := splitPath(results[len(ops)+2*i+1].Path)
		if held[i], err = b.lock.hold(ctx, name); err != nil {
			for _, h := range held[:i] {
				h.cancel(ErrReleased)
			}
			for j := range bids[i:] {
				s.discard(results[len(ops)+2*(i+j)+1].Path)
			}
			for _, h := range held[:i] {
				s.discard(h.path)
			}
			return nil, nil, err
		}
	}
	return held, results[:len(ops)], nil
}

// await runs work in the session's context, and returns when it does or ctx
// ends; what it brings after that goes to late.
func await[T any](ctx context.Context, s *Session, work func(context.Context) (T, error), late func(T)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome)
	s.background(func() {
		value, err := work(s.ctx)
		select {
		case done <- outcome{value, err}:
		case <-ctx.Done():
			if err == nil {
				late(value)
			}
		}
	})
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ended("multi", "of several locks", context.Cause(ctx))
	}
}

// discardAll removes the contenders of a transaction whose answer was lost.
func discardAll(s *Session, bids []*Bid) {
	for _, b := range bids {
		name, err := b.lock.find(s.ctx, b.prefix)
		if err != nil {
			return // only the end of the session stops it, and takes them along
		}
		if name != "" {
			s.discard(b.lock.path(name))
		}
	}
}

// ReleaseAll gives locks up in one transaction with other changes, all or
// nothing: first before, then the locks, then after, which may remove their
// directories. ErrFenceLost says that a lock was lost and nothing was changed.
//
// ctx must not be bound to the locks, which end within the transaction.
func ReleaseAll(ctx context.Context, held []*Held, before, after []Op) error {
	if len(held) == 0 {
		return fmt.Errorf("release locks: %w: none", ErrBadPath)
	}
	ops := append([]Op{}, before...)
	for _, h := range held {
		if err := h.cause(); err != nil {
			return ended("release", h.path, err)
		}
		ops = append(ops, OpDelete(h.path, AnyVersion))
	}
	ops = append(ops, after...)
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

// gone tells whether none of the contenders exists any more.
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

// Rival returns when somebody else stands in line for the lock, or ctx ends or
// the lock is lost, whose cause is then the error.
func (h *Held) Rival(ctx context.Context) error {
	ctx, cancel := h.Bind(ctx)
	defer cancel()
	dir, _ := splitPath(h.path)
	for {
		n, err := h.session.childrenWatch(ctx, dir)
		if err != nil {
			return err
		}
		if len(sortContenders(n.children)) > 1 {
			return nil
		}
		select {
		case <-n.watch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
