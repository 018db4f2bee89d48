package recipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// readMark stands between the random part of a reader's name and its sequence number.
const readMark = "__rlock__"

// NewReadLock returns the read side of the lock of dir, as kazoo's ReadLock has it: many
// readers hold it at once, each behind the writers that came before it. What a Held of it
// writes is fenced as that of a Lock.
//
// kazoo's own reader also waits for a writer that came after it, if that came before it had
// looked; ours does not.
func NewReadLock(s *Session, dir, identifier string, opts ...LockOption) *Lock {
	l := NewLock(s, dir, identifier, opts...)
	l.mark = readMark
	return l
}

// NewWriteLock returns the write side of the lock of dir, as kazoo's WriteLock has it: the
// one that holds it is behind all readers and writers that came before it, and those that
// come after it wait. If ctx ends while Acquire waits the error is a *HeldUpError.
func NewWriteLock(s *Session, dir, identifier string, opts ...LockOption) *Lock {
	l := NewLock(s, dir, identifier, opts...)
	l.behind = []string{lockMark, readMark}
	return l
}

// HeldUpError says who held a writer up for longer than it would wait. It is ErrLocked, and
// the end of the wait.
type HeldUpError struct {
	Dir string
	// By are those that were in line before it when it gave up, the first first. It may be
	// empty: they may have left at that moment, or ZooKeeper may not have told.
	By    []Contender
	cause error
}

// Error names them by what they say of themselves.
func (e *HeldUpError) Error() string {
	names := make([]string, 0, len(e.By))
	for _, c := range e.By {
		name := c.Identifier
		if name == "" {
			name = c.Name
		}
		names = append(names, name)
	}
	return fmt.Sprintf("lock %s: held by %s: %v", e.Dir, strings.Join(names, ", "), e.cause)
}

// Unwrap is ErrLocked and why the wait has ended.
func (e *HeldUpError) Unwrap() []error { return []error{ErrLocked, e.cause} }

// heldUp is why the contender name waits no longer: for a writer it tells for whom it did.
func (l *Lock) heldUp(ctx context.Context, name string) error {
	cause := context.Cause(ctx)
	if !slices.Contains(l.behind, readMark) {
		return fmt.Errorf("lock %s: %w: %w", l.dir, ErrLocked, cause)
	}
	looking, cancel := l.session.Clock().WithTimeout(context.WithoutCancel(ctx), heldUpWait)
	defer cancel()
	e := &HeldUpError{Dir: l.dir, cause: cause}
	names, err := l.session.Children(looking, l.dir)
	if err != nil {
		return e
	}
	line := sortContenders(names, l.behind...)
	at := slices.IndexFunc(line, func(c Contender) bool { return c.Name == name })
	if e.By, err = readContenders(looking, l.session, l.dir, line[:max(at, 0)]); err != nil {
		e.By = nil
	}
	return e
}
