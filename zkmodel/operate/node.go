package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Hold keeps a node for a person to look at, for a time at most; 0 is for ever.
//
// Errors: zkmodel.ErrNotFound; zkmodel.ErrTransition for a node that is being launched
// or deleted, of which nothing is changed then.
func (o *Operator) Hold(ctx context.Context, id, reason string, limit time.Duration) error {
	lock, n, err := o.LockNode(ctx, id)
	if err != nil {
		return err
	}
	return o.HoldLocked(ctx, lock, n, reason, limit)
}

// HoldLocked is Hold for who has the node's lock already, which it releases.
func (o *Operator) HoldLocked(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, reason string, limit time.Duration) error {
	comment := o.who
	if reason != "" {
		comment += ": " + reason
	}
	err := zkmodel.Move(n, zkmodel.NodeHold, zkmodel.ByOperator, o.epoch())
	if err == nil {
		n.Comment = comment
		n.HoldExpiration = zkmodel.Seconds(limit / time.Second)
		err = o.store.SaveNode(ctx, lock, n)
	}
	return errors.Join(err, lock.Release(ctx))
}

// DeleteNode marks a node for deletion; the launchers of its provider do the rest. With
// the last node of a request that a person made the request goes.
//
// Errors: zkmodel.ErrNotFound; zkmodel.ErrUndecodable for a record that cannot be read.
func (o *Operator) DeleteNode(ctx context.Context, id string) error {
	return o.DeleteNodeIf(ctx, id, func(*zkmodel.Node) error { return nil })
}

// DeleteNodeIf is DeleteNode unless check refuses the node, as it is under its lock; nothing
// has changed then.
// Errors: as DeleteNode; those of check.
func (o *Operator) DeleteNodeIf(ctx context.Context, id string, check func(*zkmodel.Node) error) error {
	lock, n, err := o.LockNode(ctx, id)
	if err != nil {
		return err
	}
	if !n.Unknown() {
		err = check(n)
	}
	if err == nil {
		err = o.markDeleting(ctx, lock, n)
	}
	return errors.Join(err, lock.Release(ctx))
}

// DeleteNodeNow is DeleteNode for who deletes the machine: remove is called under the node's
// lock, in a context that ends with it, once the record says that the node goes; then the
// record goes. check may refuse before anything is changed. When remove fails the node stays
// marked, and the launchers of its provider go on.
//
// Errors: as DeleteNode; those of check and remove.
func (o *Operator) DeleteNodeNow(ctx context.Context, id string, check func(*zkmodel.Node) error, remove func(context.Context, *zkmodel.Node) error) error {
	lock, n, err := o.LockNode(ctx, id)
	if err != nil {
		return err
	}
	if !n.Unknown() {
		err = check(n)
	}
	if err == nil {
		err = o.markDeleting(ctx, lock, n)
	}
	if err == nil {
		bound, unbind := lock.Bind(ctx)
		defer unbind()
		if err = remove(bound, n); err != nil {
			n.DeleteError = brief(err.Error())
		}
	}
	if err != nil {
		ending, cancel := clock.WithTimeout(context.WithoutCancel(ctx), LockWait)
		defer cancel()
		if n.DeleteError != "" {
			err = errors.Join(err, o.store.SaveNode(ending, lock, n))
		}
		return errors.Join(err, lock.Release(ending))
	}
	// The lock ends within this, so it must not end with the lock.
	return o.store.DeleteNode(lock.Session().Context(), lock, n) //nolint:contextcheck // see above
}

// markDeleting says in the record of a node, whose lock is held, that it goes.
func (o *Operator) markDeleting(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	if n.Unknown() {
		return fmt.Errorf("delete node %s: %w: %w", n.ID, zkmodel.ErrUndecodable, n.Broken)
	}
	if n.State != zkmodel.NodeDeleting { // else its age would begin again
		if err := zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByOperator, o.epoch()); err != nil {
			return err
		}
	}
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("%s wanted it", o.who)
	}
	if err := o.store.SaveNode(ctx, lock, n); err != nil {
		return err
	}
	return o.forgetRequest(ctx, n.AllocatedTo)
}

// DeleteBrokenNode removes the record of a node of which nobody can tell what it is; its
// machine, if any, is found as a leak.
//
// Errors: zkmodel.ErrNotFound, ErrDecodable.
func (o *Operator) DeleteBrokenNode(ctx context.Context, id string) error {
	lock, n, err := o.LockNode(ctx, id)
	if err != nil {
		return err
	}
	if n.Broken == nil {
		err = fmt.Errorf("node %s is %s, and %w", id, n.State, ErrDecodable)
	} else {
		err = o.store.Session().DeleteTree(ctx, n.Path())
	}
	return errors.Join(err, lock.Release(ctx))
}
