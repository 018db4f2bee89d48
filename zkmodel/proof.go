package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/planted"
	"poolkeeper/zkmodel/recipe"
)

// proofTime is how old a proof of absence may be when it is used.
const proofTime = 10 * time.Second

var (
	// ErrRecorded says that there is a record, so that nothing may be deleted for the
	// lack of one.
	ErrRecorded = errors.New("there is a record")
	// ErrUnproven says that a Proof does not allow what was to be done: it is that of
	// another record, too old, or its lock was lost.
	ErrUnproven = errors.New("not proven")
)

// Proof allows to delete what a record stands for: a machine, an image, files. Each
// function that does so asks for one, and none can be made outside of this package:
// either there is no record (Mirror.Absent), or it was read under its lock, which is
// still held (UnderLock). The zero Proof allows nothing.
type Proof struct {
	path string
	made time.Time    // of a proof of absence
	by   clock.Clock  // which made is of
	lock *recipe.Held // of a record
}

// Of returns nil if the Proof is that of the record at path and still good, or else
// ErrUnproven.
func (p Proof) Of(path string) error {
	switch {
	case p.path == "":
		return fmt.Errorf("delete what belongs to %s: %w", path, ErrUnproven)
	case p.path != path:
		return fmt.Errorf("delete what belongs to %s: %w: the proof is for %s", path, ErrUnproven, p.path)
	case p.lock != nil && p.lock.Lost() != nil:
		return fmt.Errorf("delete what belongs to %s: %w: %w", path, ErrUnproven, p.lock.Lost())
	case p.lock == nil && p.by.Since(p.made) > proofTime:
		return fmt.Errorf("delete what belongs to %s: %w: absence was proven %s ago", path, ErrUnproven, p.by.Since(p.made))
	}
	return nil
}

// Absent proves that there is no record at path: of a build or upload, a node, or a
// request. It takes the word of a majority of the servers that ours has what they have
// committed before the call: a leader that was cut off, or stopped, and is none any more,
// answers a sync from what it knew until it finds out. And then a view that is complete, to
// which all that has come, and that lacks the record; and the word of our server.
// It takes no lock, which might leave something behind where nothing is.
//
// Errors: recipe.ErrUnread when part of the tree around it could not be read,
// ErrRecorded when there is a record.
func (m *Mirror) Absent(ctx context.Context, s *recipe.Session, path string) (Proof, error) {
	proofs, err := m.AllAbsent(ctx, s, path)
	if err != nil {
		return Proof{}, err
	}
	if proof, ok := proofs[path]; ok {
		return proof, nil
	}
	return Proof{}, fmt.Errorf("prove that %s is gone: %w", path, ErrRecorded)
}

// AllAbsent is Absent for many paths of one kind at the price of one barrier. Those
// that have a record are left out.
func (m *Mirror) AllAbsent(ctx context.Context, s *recipe.Session, paths ...string) (map[string]Proof, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	tree, scope := m.around(paths[0])
	if tree == nil {
		return nil, fmt.Errorf("prove that %s is gone: %w: it is not followed", paths[0], recipe.ErrUnread)
	}
	if planted.Bug("stale") {
		proofs := map[string]Proof{}
		for _, path := range paths {
			if _, there := tree.Get(path); !there {
				proofs[path] = Proof{path: path, made: clock.Now(ctx), by: clock.Of(ctx)}
			}
		}
		return proofs, nil
	}
	if err := askMajority(ctx, s, scope); err != nil {
		return nil, fmt.Errorf("prove that %s is gone: %w", paths[0], err)
	}
	if err := tree.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("prove that %s is gone: %w", paths[0], err)
	}
	var mu sync.Mutex
	proofs := map[string]Proof{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, path := range paths {
		group.Go(func() error {
			gone, err := m.absent(ctx, s, path)
			if err != nil {
				return fmt.Errorf("prove that %s is gone: %w", path, err)
			}
			if gone {
				mu.Lock()
				defer mu.Unlock()
				proofs[path] = Proof{path: path, made: clock.Now(ctx), by: clock.Of(ctx)}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return proofs, nil
}

// askMajority has the servers agree on a transaction that changes nothing. Ours has all then that was
// committed before it, and no server that has less takes our session over. Whether path is there
// does not matter: the refusal is agreed on, too.
func askMajority(ctx context.Context, s *recipe.Session, path string) error {
	for {
		_, err := s.Multi(ctx, recipe.OpCheck(path, recipe.AnyVersion))
		switch {
		case errors.Is(err, recipe.ErrNoNode):
			return nil
		case !errors.Is(err, recipe.ErrConnectionLost):
			return err
		}
	}
}

// absent asks view and server, both up to date, whether a record is gone.
func (m *Mirror) absent(ctx context.Context, s *recipe.Session, path string) (bool, error) {
	tree, scope := m.around(path)
	if err := tree.Unread(scope); err != nil {
		return false, err
	}
	if entry, there := tree.Get(path); there {
		return isLost(path, entry), nil
	}
	_, there, err := s.Exists(ctx, path)
	return !there, err
}

// isLost takes a record that cannot be read for one that is not there: a mistake that is made on purpose.
func isLost(id string, e recipe.Entry) bool {
	return planted.Bug("garbled") && DecodeNode(id, e.Data, e.Stat).Broken != nil
}

// Listed returns nil if the list of what is right below path could be read, or
// recipe.ErrUnread.
func (m *Mirror) Listed(path string) error {
	tree, _ := m.around(path)
	if tree == nil {
		return fmt.Errorf("%s: %w: it is not followed", path, recipe.ErrUnread)
	}
	if entry, _ := tree.Get(path); entry.Err != nil {
		return fmt.Errorf("%s: %w: %w", path, recipe.ErrUnread, entry.Err)
	}
	return nil
}

// Unread returns nil if all at and below path could be read, or recipe.ErrUnread.
func (m *Mirror) Unread(path string) error {
	tree, _ := m.around(path)
	if tree == nil {
		return fmt.Errorf("%s: %w: it is not followed", path, recipe.ErrUnread)
	}
	return tree.Unread(path)
}

// around is the tree that follows path, nil if none does, and the part of it that
// must be whole for the lack of a record at path to mean anything: an image, or all
// nodes or requests.
func (m *Mirror) around(path string) (tree *recipe.Tree, scope string) {
	if rest, ok := strings.CutPrefix(path, ImagesRoot+"/"); ok && m.images != nil {
		image, _, _ := strings.Cut(rest, "/")
		return m.images, ImagePath(image)
	}
	for _, part := range []struct {
		tree *recipe.Tree
		root string
	}{{m.images, ImagesRoot}, {m.nodes, NodesRoot}, {m.requests, RequestsRoot}, {m.components, ComponentsRoot}} {
		if path == part.root || strings.HasPrefix(path, part.root+"/") {
			return part.tree, part.root
		}
	}
	return nil, ""
}

// UnderLock proves what a record says: it was read, or written, under a lock that
// is held now. It is the record's own, or the one that its maker holds.
//
// Errors: ErrUnproven when the lock is another's, or lost, or the record cannot be read.
func UnderLock(lock *recipe.Held, r Record) (Proof, error) {
	path := r.Path()
	if err := r.broken(); err != nil {
		return Proof{}, fmt.Errorf("delete what belongs to %s: %w: %w", path, ErrUnproven, err)
	}
	for _, dir := range r.locks() {
		if strings.HasPrefix(lock.Path(), dir+"/") {
			proof := Proof{path: path, lock: lock}
			return proof, proof.Of(path)
		}
	}
	return Proof{}, fmt.Errorf("delete what belongs to %s: %w: %s is no lock of it", path, ErrUnproven, lock.Path())
}

// Record is one that a lock protects and that stands for something outside of the
// tree: a *Build, an *Upload or a *Node.
type Record interface {
	Path() string
	broken() error
	locks() []string // the folders of the locks of which one must be held
}

func (b *Build) broken() error  { return b.Broken }
func (u *Upload) broken() error { return u.Broken }

// A node's record that never held anything, read under its lock, says that nothing is of it.
func (n *Node) broken() error {
	if n.Leftover() {
		return nil
	}
	return n.Broken
}

func (b *Build) locks() []string { return []string{LockPath(b.Path()), BuildsLockPath(b.Image)} }

func (u *Upload) locks() []string {
	return []string{LockPath(u.Path()), UploadsLockPath(u.Image, u.Build, u.Provider)}
}

func (n *Node) locks() []string { return []string{LockPath(n.Path())} }
