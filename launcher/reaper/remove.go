package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// deleteTime is how long the deletion of one machine may take.
const deleteTime = 10 * time.Minute

// Remove deletes a node whose lock is held by who asks, with its record and lock. What it
// leaves when it fails is due as soon as the lock is given up.
func (r *Reaper) Remove(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	return r.remove(ctx, lock, n, why)
}

// remove deletes a node: in the cloud, then its record. The record says so
// before, and stays while the machine may exist.
func (r *Reaper) remove(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	machine := mayHaveMachine(n)
	if n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted {
		was, ended := n.State, r.Book.Ended(n)
		why = cmp.Or(r.doubt(n).Why, why)
		if n.Reason == "" {
			n.Reason = why
		}
		if err := zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, zkmodel.EpochOf(r.Now())); err != nil {
			return err
		}
		err := r.Book.Count(ctx, ended, func(also ...recipe.Op) error { return r.Store.SaveNode(ctx, lock, n, also...) })
		if err != nil {
			return err
		}
		r.of(n).Info("Deleting node", "node", n.ID, "provider", n.Provider, "state", was, "why", why)
		r.Own.Note(n)
		r.Step(step.DeleteMarked)
	}
	if machine {
		if err := r.removeMachine(ctx, lock, n); err != nil {
			return errors.Join(err, r.noteFailure(ctx, lock, n, err))
		}
		r.Step(step.DeleteCloud)
	}
	// Our lock ends within this, so it must not end with our lock.
	if err := r.Store.DeleteNode(lock.Session().Context(), lock, n); err != nil { //nolint:contextcheck // see above
		return err
	}
	r.Step(step.Deleted)
	r.Deleted(n.Provider)
	r.of(n).Info("Node is deleted", "node", n.ID, "provider", n.Provider)
	return nil
}

// noteFailure records why the machine of a node cannot be deleted, unless the record says so.
func (r *Reaper) noteFailure(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, failed error) error {
	if ctx.Err() == nil && zkmodel.Alike(n.DeleteError) != zkmodel.Alike(failed.Error()) {
		n.DeleteError = zkmodel.BriefTrouble(failed.Error())
		if err := r.Store.SaveNode(ctx, lock, n); err != nil {
			return err
		}
		r.Own.Note(n)
	}
	return nil
}

// mayHaveMachine tells whether a cloud may hold something of a node.
func mayHaveMachine(n *zkmodel.Node) bool {
	switch n.State {
	case zkmodel.NodeInit, zkmodel.NodeDeleted:
		return false // the cloud was not asked yet, or has forgotten it
	case zkmodel.NodeAborted:
		return !n.ExternalID.IsNull() // the cloud refused
	default:
		return true
	}
}

// removeMachine deletes what a node's record stands for, which we have read under
// its lock.
func (r *Reaper) removeMachine(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	c, ours := r.Clouds[n.Provider]
	if !ours { // a person has changed the record since it was looked at
		return fmt.Errorf("delete the machine of node %s: provider %q is not ours: %w", n.ID, n.Provider, zkmodel.ErrConflict)
	}
	p, err := c.Use()
	if err != nil {
		return err
	}
	proof, err := zkmodel.UnderLock(lock, n)
	if err != nil {
		return err
	}
	ids := []string{n.ExternalID.Text()}
	if n.ExternalID.IsNull() {
		// Its launcher may have died between the cloud's answer and the record, or the
		// cloud has not answered.
		ids, err = r.Finder.Search(ctx, p, n, c.Section().UnansweredCreateTimeout, nil, func(left time.Duration) error {
			r.of(n).Info("Node keeps its place while its machine may still be made", "node", n.ID, "provider", n.Provider,
				"asked", n.Asked.Time(), "left", left.Round(time.Second))
			return nil
		})
		if err != nil {
			return err
		}
	}
	ctx, cancel := clock.WithTimeoutCause(ctx, deleteTime, fmt.Errorf("deletion took longer than %s", deleteTime))
	defer cancel()
	for _, id := range ids {
		if err := c.Remove(ctx, proof, n.ID, id); err != nil {
			return err
		}
	}
	return nil
}
