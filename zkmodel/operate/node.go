package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	text := o.who
	if reason != "" {
		text += ": " + reason
	}
	return o.HoldLocked(ctx, lock, n, text, limit)
}

// HoldLocked is Hold for who has the node's lock already, which it releases.
func (o *Operator) HoldLocked(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, comment string, limit time.Duration) error {
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
	lock, n, err := o.LockNode(ctx, id)
	if err != nil {
		return err
	}
	if n.Unknown() {
		err := fmt.Errorf("delete node %s: %w: %w", id, zkmodel.ErrUndecodable, n.Broken)
		return errors.Join(err, lock.Release(ctx))
	}
	err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByOperator, o.epoch())
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("%s wanted it", o.who)
	}
	if err == nil {
		err = o.store.SaveNode(ctx, lock, n)
	}
	if err == nil {
		err = o.forgetRequest(ctx, n.AllocatedTo)
	}
	return errors.Join(err, lock.Release(ctx))
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
