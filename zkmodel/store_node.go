package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"

	"poolkeeper/zkmodel/recipe"
)

// CreateNode makes a node's record, in state init, takes its lock and fills in
// its ID. A crash in between leaves an unlocked record in state init with our
// launcher's name, which any launcher may clean.
func (st *Store) CreateNode(ctx context.Context, n *Node) (*recipe.Held, error) {
	n.Token = newToken()
	begin(n, EpochOf(st.now()))
	data, err := n.Encode()
	if err != nil {
		return nil, fmt.Errorf("create node: %w", err)
	}
	if err := st.session.EnsurePath(ctx, NodesRoot); err != nil {
		return nil, fmt.Errorf("create node: %w", err)
	}
	made, err := st.session.Create(ctx, NodesRoot+"/", data, recipe.Sequential)
	if err != nil {
		return nil, fmt.Errorf("create node: %w", err)
	}
	n.ID, n.Stat = path.Base(made), recipe.Stat{}
	lock, err := recipe.NewLock(st.session, LockPath(n.Path()), "").Try(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock new node %s: %w", n.ID, err)
	}
	return lock, nil
}

// LockNode takes a node's lock, or fails with recipe.ErrLocked at once, and
// reads the node afresh: checks made before the lock must be made again.
func (st *Store) LockNode(ctx context.Context, id, identifier string) (*recipe.Held, *Node, error) {
	return st.lockNode(ctx, id, recipe.NewLock(st.session, LockPath(NodePath(id)), identifier).Try)
}

// AwaitNode is LockNode for those who stand in line until ctx ends.
func (st *Store) AwaitNode(ctx context.Context, id, identifier string) (*recipe.Held, *Node, error) {
	return st.lockNode(ctx, id, recipe.NewLock(st.session, LockPath(NodePath(id)), identifier).Acquire)
}

// lockNode takes the lock one way or the other and reads the node.
func (st *Store) lockNode(ctx context.Context, id string, take func(context.Context) (*recipe.Held, error)) (*recipe.Held, *Node, error) {
	lock, err := take(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock node %s: %w", id, notFound(err))
	}
	n, err := st.Node(ctx, id)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	n.Locked = true
	return lock, n, nil
}

// Node reads one node, or fails with ErrNotFound.
func (st *Store) Node(ctx context.Context, id string) (*Node, error) {
	data, stat, err := st.session.Get(ctx, NodePath(id))
	return nodeOf(id, data, stat, err)
}

// nodeOf is the node of which a read of its record brought these.
func nodeOf(id string, data []byte, stat recipe.Stat, err error) (*Node, error) {
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", id, notFound(err))
	}
	return DecodeNode(id, data, stat), nil
}

// SaveNode writes a changed node under its lock, in one transaction with also.
func (st *Store) SaveNode(ctx context.Context, lock *recipe.Held, n *Node, also ...recipe.Op) error {
	return st.save(ctx, lock, n, also...)
}

// DeleteNode removes a node's record under its lock, and the lock with it, in
// one transaction. The lock is gone afterwards; releasing it is no error. ctx
// must not be bound to the lock.
//
// Where others stand in line for the lock, or something else is below the
// record, it takes several: the state deleted is written first, so that who
// locks the record half-way sees what it is.
func (st *Store) DeleteNode(ctx context.Context, lock *recipe.Held, n *Node) error {
	return st.deleteNode(ctx, lock, n, ByUs)
}

func (st *Store) deleteNode(ctx context.Context, lock *recipe.Held, n *Node, by Actor) error {
	err := recipe.ReleaseAll(ctx, []*recipe.Held{lock}, nil, []recipe.Op{
		recipe.OpDelete(LockPath(n.Path()), recipe.AnyVersion),
		recipe.OpDelete(n.Path(), recipe.AnyVersion),
	})
	if err == nil {
		return nil
	}
	if !errors.Is(err, recipe.ErrNotEmpty) {
		return fmt.Errorf("delete node %s: %w", n.ID, err)
	}
	if err := Move(n, NodeDeleted, by, EpochOf(st.now())); err != nil {
		return fmt.Errorf("delete node: %w", err)
	}
	if err := st.save(ctx, lock, n); err != nil {
		return err
	}
	if err := lock.DeleteTree(ctx, n.Path()); err != nil {
		return fmt.Errorf("delete node %s: %w", n.ID, err)
	}
	return nil
}
