package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/configs/kit"
	"poolkeeper/configs/planted"
)

// watchDelay is how long a lock that was won by a transaction is held before it
// is watched.
const watchDelay = 250 * time.Millisecond

// heldUpWait is how long a writer that gives up looks for who held it up.
const heldUpWait = 2 * time.Second

// lockMark stands between the random part of a contender's name and its sequence number.
const lockMark = "__lock__"

// Lock is a lock as kazoo's Lock recipe has it, so that Nodepool, Zuul and we
// exclude each other: each contender creates an ephemeral sequential node in a
// directory, and the one with the lowest number holds the lock.
type Lock struct {
	session    *Session
	dir        string
	identifier string
	ensure     bool
	mark       string   // in the names of its contenders
	behind     []string // the marks of contenders that it stands in line behind
}

// LockOption changes a Lock.
type LockOption func(*Lock)

// EnsureParents makes a Lock create the parents of its directory as well.
//
// Without it only the directory itself is created, and a missing parent is
// ErrNoNode: locking a record that has just been deleted must not bring it back.
func EnsureParents() LockOption { return func(l *Lock) { l.ensure = true } }

// NewLock returns the lock of dir for s. The identifier, which may be empty, is
// shown to those who list the contenders. Nothing happens before Try or Acquire.
func NewLock(s *Session, dir, identifier string, opts ...LockOption) *Lock {
	l := &Lock{session: s, dir: dir, identifier: identifier, mark: lockMark, behind: []string{lockMark}}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

// Try takes the lock if it is free, and returns ErrLocked otherwise.
func (l *Lock) Try(ctx context.Context) (*Held, error) {
	// Looking first leaves others undisturbed: a contender of ours, however
	// short-lived, would fail their tries.
	switch names, err := l.session.Children(ctx, l.dir); {
	case err != nil && !errors.Is(err, ErrNoNode):
		return nil, err
	case len(sortContenders(names, l.behind...)) > 0:
		return nil, fmt.Errorf("lock %s: %w", l.dir, ErrLocked)
	}
	name, err := l.enter(ctx, l.mark)
	if err != nil {
		return nil, err
	}
	ahead, err := l.predecessor(ctx, name)
	if err == nil && ahead != "" {
		err = fmt.Errorf("lock %s: %w", l.dir, ErrLocked)
	}
	if err != nil {
		l.session.discard(l.path(name))
		return nil, err
	}
	return l.hold(ctx, name)
}

// Acquire takes the lock as soon as all contenders before it are gone. If ctx
// ends while it waits for them, the error is ErrLocked and the cause of ctx.
func (l *Lock) Acquire(ctx context.Context) (*Held, error) {
	for {
		name, err := l.enter(ctx, l.mark)
		if err != nil {
			return nil, err
		}
		err = l.await(ctx, name)
		if err == nil {
			var held *Held
			if held, err = l.hold(ctx, name); err == nil {
				return held, nil
			}
		}
		l.session.discard(l.path(name))
		if !errors.Is(err, ErrFenceLost) {
			return nil, err
		}
		// Somebody removed our contender while we waited: stand in line again, as kazoo does.
	}
}

// await returns when the contender name is the first.
func (l *Lock) await(ctx context.Context, name string) error {
	for {
		ahead, err := l.predecessor(ctx, name)
		if err != nil || ahead == "" {
			return err
		}
		n, err := l.session.getWatch(ctx, l.path(ahead))
		if errors.Is(err, ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-n.watch:
		case <-ctx.Done():
			return l.heldUp(ctx, name)
		case <-l.session.ctx.Done():
			return ended("lock", l.dir, l.session.cause())
		}
	}
}

// predecessor returns the contender right before name of those that it stands behind, or ""
// if there is none. If name itself is gone the error is ErrFenceLost.
func (l *Lock) predecessor(ctx context.Context, name string) (string, error) {
	names, err := l.session.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return "", err
	}
	ahead := ""
	for _, c := range sortContenders(names, append([]string{l.mark}, l.behind...)...) {
		switch {
		case c.Name == name:
			return ahead, nil
		case slices.ContainsFunc(l.behind, func(mark string) bool { return markedSeq(c.Name, mark) != "" }):
			ahead = c.Name
		}
	}
	return "", fmt.Errorf("lock %s: %w", l.dir, ErrFenceLost)
}

// enter creates a contender, with mark in its name, and returns its name. If ctx ends while that is
// under way, the contender is removed as soon as it is known to exist.
func (l *Lock) enter(ctx context.Context, mark string) (string, error) {
	return runDetached(ctx, l.session, "lock", l.dir,
		func() (string, error) { return l.create(mark) },
		func(name string) { l.session.discard(l.path(name)) })
}

// create creates a contender. After a lost connection it looks for its own name
// before it tries again, so that no orphan is left at the head of the line.
func (l *Lock) create(mark string) (string, error) {
	ctx := l.session.ctx
	prefix := kit.RandomHex(16) + mark
	for {
		path, err := l.session.Create(ctx, l.path(prefix), []byte(l.identifier), Ephemeral|Sequential)
		switch {
		case err == nil:
			_, name := splitPath(path)
			return name, nil
		case errors.Is(err, ErrNoNode):
			err = l.makeDir(ctx)
		case errors.Is(err, ErrConnectionLost):
			var name string
			if name, err = l.find(ctx, prefix); name != "" {
				return name, nil
			}
			if err != nil {
				l.discardLost(prefix)
			}
		}
		if err != nil {
			return "", err
		}
	}
}

// find returns the name of the child that begins with prefix, or "".
func (l *Lock) find(ctx context.Context, prefix string) (string, error) {
	if planted.Bug("orphan") {
		return "", nil
	}
	// The server that we are connected to now may lag behind the one that took the request.
	if err := l.session.Sync(ctx); err != nil {
		return "", err
	}
	names, err := l.session.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return "", err
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return name, nil
		}
	}
	return "", nil
}

// discardLost removes, in the background, the contender whose name begins with prefix, should it be there: the answer to its
// creation was lost, and it could not be looked for. Left alone it would hold the lock as long as the session lives.
func (l *Lock) discardLost(prefix string) {
	s := l.session
	s.background(func() {
		for pause := discardPause; s.ctx.Err() == nil; pause = min(2*pause, lastDiscard) {
			if name, err := l.find(s.ctx, prefix); err == nil {
				if name != "" {
					s.discard(l.path(name))
				}
				return
			}
			waitFor(s.ctx, s.Clock(), pause)
		}
	})
}

// makeDir creates the lock's directory, and with EnsureParents what is above it.
func (l *Lock) makeDir(ctx context.Context) error {
	if l.ensure {
		return l.session.EnsurePath(ctx, l.dir)
	}
	_, err := l.session.Create(ctx, l.dir, nil, Persistent)
	if errors.Is(err, ErrNodeExists) || errors.Is(err, ErrConnectionLost) {
		return nil
	}
	return err
}

func (l *Lock) path(name string) string { return joinPath(l.dir, name) }

// hold begins to watch the contender name, which is the first.
func (l *Lock) hold(ctx context.Context, name string) (*Held, error) {
	n, err := l.session.getWatch(ctx, l.path(name))
	if errors.Is(err, ErrNoNode) {
		return nil, fmt.Errorf("lock %s: %w", l.dir, ErrFenceLost)
	}
	if err != nil {
		l.session.discard(l.path(name))
		return nil, err
	}
	h := newHeld(l.session, l.path(name))
	l.session.background(func() { h.guard(n.watch) })
	return h, nil
}

// adopt is hold for a contender that a transaction has just made, so that nothing
// need be read. Most locks of this kind are given up again within a moment; the
// watch, which costs a read and an event, is for those that are kept. Until then
// a loss is found by the fences.
func (l *Lock) adopt(name string) *Held {
	h := newHeld(l.session, l.path(name))
	fired := make(chan zk.Event)
	close(fired)
	l.session.Clock().AfterFunc(watchDelay, func() {
		if h.ctx.Err() == nil {
			h.session.background(func() { h.guard(fired) })
		}
	})
	return h
}

// guard ends the context of h when its contender is deleted.
func (h *Held) guard(watch <-chan zk.Event) {
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-watch:
		}
		n, err := h.session.getWatch(h.ctx, h.path)
		if errors.Is(err, ErrNoNode) {
			h.ending <- struct{}{}
			h.cancel(fmt.Errorf("contender %s is gone: %w", h.path, ErrFenceLost))
			<-h.ending
			return
		}
		if err != nil {
			return // only the end of the session or of h stops a read
		}
		watch = n.watch
	}
}
