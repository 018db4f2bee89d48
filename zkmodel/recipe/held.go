package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"poolkeeper/configs/planted"
)

// Held is a lock that we hold. Its writes are fenced: each is one transaction
// that first checks that the contender which holds the lock still exists, so
// that a process that was paused, and lost its session, can change nothing.
// A write whose fence failed returns ErrFenceLost.
//
// Other than those of a Session, the writes of a Held also find out what became
// of them when the connection breaks, except Multi and sequential Create.
type Held struct {
	session *Session
	path    string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// ending is full while the contender may be being removed, so that its end is not
	// taken for a loss before it is known to be none. No mutex: requests are waited for meanwhile.
	ending chan struct{}
}

// newHeld is the lock with the contender at path, of which nobody has told that it is lost.
func newHeld(s *Session, path string) *Held {
	h := &Held{session: s, path: path, ending: make(chan struct{}, 1)}
	h.ctx, h.cancel = context.WithCancelCause(s.ctx)
	return h
}

// Context ends when the lock is lost: its cause is ErrFenceLost if somebody
// removed the contender, that of the session if it ended, or ErrReleased.
func (h *Held) Context() context.Context { return h.ctx }

// Lost says why the lock is held no more; nil while it is.
func (h *Held) Lost() error { return h.cause() }

// cause returns why the lock is lost, or nil.
func (h *Held) cause() error { return context.Cause(h.ctx) }

// Bind returns a context that ends with ctx or when the lock is lost, whichever
// is first, and has the cause of that end.
func (h *Held) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return bind(ctx, h.ctx)
}

// Session returns the session that the lock lives with.
func (h *Held) Session() *Session { return h.session }

// Path returns the path of the contender.
func (h *Held) Path() string { return h.path }

// Fence returns the check that makes a Multi fail if the lock is lost.
func (h *Held) Fence() Op { return OpCheck(h.path, AnyVersion) }

// Release gives the lock up. If ctx ends before that is known to have worked, or it is
// refused, it goes on in the background; with the end of the session it has happened anyway.
func (h *Held) Release(ctx context.Context) error {
	h.cancel(ErrReleased)
	done := make(chan error, 1)
	h.session.background(func() {
		err := h.session.deleteSurely(h.session.ctx, h.path)
		switch {
		case h.session.ctx.Err() != nil:
			err = nil
		case err != nil:
			h.session.discard(h.path)
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ended("release", h.path, context.Cause(ctx))
	}
}

// Multi applies ops as one transaction behind the fence; the results are those
// of ops. After ErrConnectionLost it may have been applied.
func (h *Held) Multi(ctx context.Context, ops ...Op) ([]OpResult, error) {
	if len(ops) == 0 {
		ops = []Op{h.Fence()}
	}
	if err := h.cause(); err != nil {
		return nil, ended(ops[0].verb, ops[0].path, err)
	}
	fence := h.Fence()
	if planted.Bug("fence") {
		fence = OpCheck("/", AnyVersion)
	}
	results, failed, err := h.session.multi(ctx, slices.Concat([]Op{fence}, ops))
	switch {
	case failed == 0 && errors.Is(err, ErrNoNode):
		return nil, fmt.Errorf("%s %s: contender %s is gone: %w", ops[0].verb, ops[0].path, h.path, ErrFenceLost)
	case err != nil:
		return nil, err
	}
	return results[1:], nil
}

// Set replaces the data of the record at path if it still has version, or AnyVersion, in one
// transaction with also.
func (h *Held) Set(ctx context.Context, path string, data []byte, version int32, also ...Op) (Stat, error) {
	for {
		results, err := h.Multi(ctx, slices.Concat([]Op{OpSet(path, data, version)}, also)...)
		if err == nil {
			return results[0].Stat, nil
		}
		if !errors.Is(err, ErrConnectionLost) {
			return Stat{}, err
		}
		// Under the lock nobody else writes the record, so its version tells.
		now, stat, err := h.reread(ctx, path)
		if err != nil {
			return Stat{}, err
		}
		if version != AnyVersion && stat.Version == version+1 && bytes.Equal(now, data) {
			return stat, nil
		}
	}
}

// Create creates a node, in one transaction with also, and returns its path. With mode
// Sequential it may have been created although the error is ErrConnectionLost; see CreateUnique.
func (h *Held) Create(ctx context.Context, path string, data []byte, mode Mode, also ...Op) (string, error) {
	for tried := false; ; tried = true {
		results, err := h.Multi(ctx, slices.Concat([]Op{OpCreate(path, data, mode)}, also)...)
		switch {
		case err == nil:
			return results[0].Path, nil
		case mode&Sequential != 0:
			return "", err
		case tried && errors.Is(err, ErrNodeExists):
			now, _, rerr := h.reread(ctx, path)
			if rerr == nil && bytes.Equal(now, data) {
				return path, nil // made by the try whose answer was lost
			}
			if rerr != nil && !errors.Is(rerr, ErrNoNode) {
				return "", rerr // it may have been
			}
			return "", err
		case !errors.Is(err, ErrConnectionLost):
			return "", err
		}
	}
}

// CreateUnique creates a sequential node whose path begins with prefix, exactly
// once: after a lost connection it looks for a node with that prefix whose data
// mine recognises, before it tries again. mine must be true for data alone, so
// data should hold something unique.
func (h *Held) CreateUnique(ctx context.Context, prefix string, data []byte, mine func(data []byte) bool) (string, error) {
	for {
		path, err := h.Create(ctx, prefix, data, Sequential)
		if !errors.Is(err, ErrConnectionLost) {
			return path, err
		}
		if path, err = h.find(ctx, prefix, mine); err != nil || path != "" {
			return path, err
		}
	}
}

// find returns the youngest node that prefix and mine recognise, or "".
func (h *Held) find(ctx context.Context, prefix string, mine func([]byte) bool) (string, error) {
	if err := h.session.Sync(ctx); err != nil {
		return "", err
	}
	parent, start := splitPath(prefix)
	names, err := h.session.Children(ctx, parent)
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if seq, ok := strings.CutPrefix(name, start); !ok || !isSeq(seq) {
			continue
		}
		data, _, err := h.session.Get(ctx, joinPath(parent, name))
		if err != nil && !errors.Is(err, ErrNoNode) {
			return "", err
		}
		if err == nil && mine(data) {
			return joinPath(parent, name), nil
		}
	}
	return "", nil
}

// Delete removes the node at path if it still has version, or AnyVersion, and no children.
func (h *Held) Delete(ctx context.Context, path string, version int32) error {
	for tried := false; ; tried = true {
		_, err := h.Multi(ctx, OpDelete(path, version))
		if tried && errors.Is(err, ErrNoNode) {
			return nil // removed by the try whose answer was lost
		}
		if !errors.Is(err, ErrConnectionLost) {
			return err
		}
	}
}

// DeleteTree removes the node at path and all below it, as Session.DeleteTree
// does, behind the fence; also goes with the node itself. The lock may be below path: then
// it is released with the tree, and ctx may be one that Bind has made.
func (h *Held) DeleteTree(ctx context.Context, path string, also ...Op) error {
	if !within(path, h.path) {
		return deleteTree(ctx, h.session, path, h.path, h.Multi, also)
	}
	// The watch may fire before the answer arrives: not a loss, but our own doing.
	h.ending <- struct{}{}
	defer func() { <-h.ending }()
	if err := deleteTree(ctx, h.session, path, h.path, h.Multi, also); err != nil {
		return err
	}
	h.cancel(ErrReleased)
	return nil
}

// reread reads path as fresh as the write whose answer was lost. What it brings tells of that
// write only if the lock was held all the time, which a look at the contender behind it proves:
// the next holder may have written the same.
func (h *Held) reread(ctx context.Context, path string) ([]byte, Stat, error) {
	if err := h.session.Sync(ctx); err != nil {
		return nil, Stat{}, err
	}
	data, stat, err := h.session.Get(ctx, path)
	if err != nil || planted.Bug("claim") {
		return data, stat, err
	}
	switch _, there, err := h.session.Exists(ctx, h.path); {
	case err != nil:
		return nil, Stat{}, err
	case !there:
		return nil, Stat{}, fmt.Errorf("see whether %s was written: contender %s is gone: %w", path, h.path, ErrFenceLost)
	}
	return data, stat, nil
}
