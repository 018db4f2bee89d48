package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"poolkeeper/configs/planted"
	"poolkeeper/zkmodel/recipe"
)

// AcceptRequest takes a request's lock, writes the request as it stands now, and
// makes records of new nodes in state init, whose ids it fills in: all of it or
// nothing, in one transaction, which also must succeed with. The records'
// versions are those that the caller has seen; recipe.ErrVersion says that the
// request has changed since, recipe.ErrLocked that another process has it.
//
// After recipe.ErrConnectionLost the request may be as written, without a lock.
func (st *Store) AcceptRequest(ctx context.Context, r *Request, nodes []*Node, also ...recipe.Op) (*recipe.Held, error) {
	save, err := SaveOp(r)
	if err != nil {
		return nil, fmt.Errorf("accept request: %w", err)
	}
	ops := append([]recipe.Op{save}, also...)
	for _, n := range nodes {
		n.Token = newToken()
		begin(n, EpochOf(st.now()))
		data, err := n.Encode()
		if err != nil {
			return nil, fmt.Errorf("accept request %s: %w", r.ID, err)
		}
		ops = append(ops, recipe.OpCreate(NodesRoot+"/", data, recipe.Sequential))
	}
	lock, results, err := st.lockWith(ctx, RequestLockPath(r.ID), ops)
	if err != nil {
		return nil, fmt.Errorf("accept request %s: %w", r.ID, notFound(err))
	}
	r.Stat = results[0].Stat
	for i, n := range nodes {
		n.ID, n.Stat = path.Base(results[1+len(also)+i].Path), recipe.Stat{}
	}
	return lock, nil
}

// lockWith takes a lock together with ops, in one transaction when nobody had
// that lock before, else in two.
func (st *Store) lockWith(ctx context.Context, dir string, ops []recipe.Op) (*recipe.Held, []recipe.OpResult, error) {
	lock := recipe.NewLock(st.session, dir, "", recipe.EnsureParents())
	held, results, err := recipe.TakeAll(ctx, st.session, []*recipe.PendingLock{lock.Pending()}, ops...)
	if err == nil {
		return held[0], results, nil
	}
	if !errors.Is(err, recipe.ErrNodeExists) {
		return nil, nil, err
	}
	one, err := lock.Try(ctx)
	if err != nil {
		return nil, nil, err
	}
	if results, err = one.Multi(ctx, ops...); err != nil {
		return nil, nil, errors.Join(err, one.Release(ctx))
	}
	return one, results, nil
}

// BeginNodes takes the locks of nodes that were just made and writes them as
// they stand now, in one transaction fenced by the request's lock, and keeps their
// launch ids below LaunchesRoot, and does also. The locks are in the order of the nodes.
func (st *Store) BeginNodes(ctx context.Context, request *recipe.Held, nodes []*Node, also ...recipe.Op) ([]*recipe.Held, error) {
	ops := []recipe.Op{request.Fence()}
	var pending []*recipe.PendingLock
	for _, n := range nodes {
		save, err := SaveOp(n)
		if err != nil {
			return nil, fmt.Errorf("begin node: %w", err)
		}
		if planted.Bug("record") {
			save = recipe.OpCheck(n.Path(), n.Stat.Version)
		}
		ops = append(ops, save)
		pending = append(pending, recipe.NewLock(st.session, LockPath(n.Path()), "").Pending())
	}
	ops = slices.Concat(ops, launchOps(nodes), also)
	held, results, err := recipe.TakeAll(ctx, st.session, pending, ops...)
	if errors.Is(err, recipe.ErrNodeExists) || errors.Is(err, recipe.ErrNoNode) {
		if err = st.makeRoomForLaunches(ctx, nodes); err == nil {
			held, results, err = recipe.TakeAll(ctx, st.session, pending, ops...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("begin nodes: %w", notFound(err))
	}
	for i, n := range nodes {
		n.Stat = results[1+i].Stat
	}
	return held, nil
}

// FinishRequest writes a request as it stands now, and those of its nodes that
// have changed, and gives up all its locks: everything or nothing, so who
// sees the request done finds its nodes free, and as we left them: kept are those that
// were written before, which no hand and no restored tree may have changed since. ctx must
// not be bound to the locks.
//
// Errors: ErrNotFound when the request is gone, recipe.ErrVersion when a record
// has changed, recipe.ErrFenceLost when a lock was lost.
func (st *Store) FinishRequest(ctx context.Context, locks []*recipe.Held, r *Request, changed []*Node, kept ...*Node) error {
	save, err := SaveOp(r)
	if err != nil {
		return fmt.Errorf("finish request: %w", err)
	}
	ops := []recipe.Op{save}
	for _, n := range changed {
		if save, err = SaveOp(n); err != nil {
			return fmt.Errorf("finish request %s: %w", r.ID, err)
		}
		ops = append(ops, save)
	}
	for _, n := range kept {
		ops = append(ops, recipe.OpCheck(n.Path(), n.Stat.Version))
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		return recipe.ReleaseAll(ctx, locks, slices.Concat(ops, also), nil)
	}, r)
	if err != nil {
		return fmt.Errorf("finish request %s: %w", r.ID, notFound(err))
	}
	return nil
}

// DropRequest deletes a request of our own and gives up all its locks, as
// FinishRequest does.
func (st *Store) DropRequest(ctx context.Context, locks []*recipe.Held, r *Request, changed []*Node) error {
	ops := []recipe.Op{recipe.OpDelete(r.Path(), recipe.AnyVersion)}
	for _, n := range changed {
		save, err := SaveOp(n)
		if err != nil {
			return fmt.Errorf("drop request %s: %w", r.ID, err)
		}
		ops = append(ops, save)
	}
	if err := recipe.ReleaseAll(ctx, locks, ops, nil); err != nil {
		return fmt.Errorf("drop request %s: %w", r.ID, notFound(err))
	}
	return nil
}
