package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A node that could not be read, for what is no fault of the connection, is read
// again after a while: sooner at first, and then ever more rarely.
const (
	treeRetry     = 5 * time.Second
	treeRetryMost = time.Minute
)

// ErrUnread says that a part of the tree could not be read, so that nobody knows
// what is in it: what is missing in a View may be there.
var ErrUnread = errors.New("not readable at present")

// Unreadable reports whether err is about something that is there, and that we may not,
// or cannot, read, rather than about the connection or the caller.
func Unreadable(err error) bool { return errors.Is(err, ErrAuth) || errors.Is(err, ErrServer) }

// unread is why a node could not be read, and how often in a row.
type unread struct {
	err   error
	times int
}

// miss notes that the node n at path, which is there, cannot be read, and returns
// when to try again. The caller holds the mutex of the Tree.
func (t *Tree) miss(n *treeNode, path string, err error) time.Duration {
	times := t.unread[n].times
	t.unread[n] = unread{err, times + 1}
	if !n.failed {
		n.failed = true
		t.touch(path)
	}
	if t.tell.Warn(t.log, "Part of the tree cannot be read; nothing is taken for absent there",
		"path", path, "error", err, "unread", len(t.unread)) {
		t.told = true
	}
	return min(treeRetry<<min(times, 8), treeRetryMost)
}

// found notes that the node n at path was read. The caller holds the mutex of the Tree.
func (t *Tree) found(n *treeNode, path string) {
	if !n.failed {
		return
	}
	n.failed = false
	delete(t.unread, n)
	t.touch(path)
	t.whole()
}

// whole says that all can be read again, if it was said that it cannot. The caller
// holds the mutex of the Tree.
func (t *Tree) whole() {
	if t.told && len(t.unread) == 0 {
		t.told = false
		t.log.Info("The whole tree can be read again", "root", t.root)
	}
}

// Unread returns nil if all of the Tree at and below path, and what leads there,
// could be read, so that what a View lacks there is not there; or else ErrUnread
// with the first path that could not, and why.
func (v View) Unread(path string) error {
	t := v.tree
	if len(t.unread) == 0 {
		return nil
	}
	type gap struct {
		path string
		err  error
	}
	var gaps []gap
	for n, u := range t.unread {
		if at := t.path(n); within(path, at) || within(at, path) {
			gaps = append(gaps, gap{at, u.err})
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	first := slices.MinFunc(gaps, func(a, b gap) int { return cmp.Compare(a.path, b.path) })
	return fmt.Errorf("%s (%d in all): %w: %w", first.path, len(gaps), ErrUnread, first.err)
}

// Unread is View.Unread as of now.
func (t *Tree) Unread(path string) (err error) {
	t.View(func(v View) { err = v.Unread(path) })
	return err
}
