package launcher

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tidy does a chore, under the node's lock and after a second look at it.
func (s *shift) tidy(ctx context.Context, c chore) error {
	id := c.node.ID
	lock, n, err := s.store.LockNode(ctx, id, "")
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return nil
	case err != nil:
		s.log.Debug("Node is somebody else's", "node", id, "error", err)
		return err
	}
	s.step(StepDeleteLocked)
	s.own.note(n)
	defer s.own.finishNode(id)
	bound, cancel := lock.Bind(ctx)
	defer cancel()
	err = s.tidyLocked(bound, lock, n, c)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("Node is left alone for a moment", "node", id, "state", n.State, "error", err)
	}
	parting, done := s.parting(ctx)
	defer done()
	return errors.Join(err, lock.Release(parting))
}

// tidyLocked does a chore with a node that we have locked and read afresh.
func (s *shift) tidyLocked(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, c chore) error {
	if n.Broken != nil {
		if c.node.Broken == nil {
			return nil
		}
		return s.store.Session().DeleteTree(ctx, n.Path())
	}
	if n.State != c.node.State || s.table.node(n.State) != c.duty {
		return nil // somebody moved it; the next look decides anew
	}
	switch c.duty {
	case dutySettle:
		return s.settleNode(ctx, lock, n, c.why)
	case dutyRecover, dutyExpire, dutyRemove:
		return s.remove(ctx, lock, n, c.why)
	case dutyNone, dutyAssign, dutyReclaim:
	}
	return nil
}

// settleNode gives a ready node whose request is gone back for others to use, or
// ends one that nobody wanted for too long.
func (s *shift) settleNode(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	if n.AllocatedTo == "" {
		r := s.rules()
		if _, _, due := readyChore(n, r.ready); !r.useless(n) && (due.IsZero() || due.After(s.now())) {
			return nil
		}
		return s.remove(ctx, lock, n, why)
	}
	if _, err := s.store.Request(ctx, n.AllocatedTo); !errors.Is(err, zkmodel.ErrNotFound) {
		return err
	}
	s.log.Info("Node is free again", "node", n.ID, "request", n.AllocatedTo)
	release(n)
	return s.store.SaveNode(ctx, lock, n)
}

// remove deletes a node: in the cloud, then its record. The record says so
// before, and stays while the machine may exist.
func (s *shift) remove(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	machine := mayHaveMachine(n)
	if n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted {
		s.log.Info("Deleting node", "node", n.ID, "provider", n.Provider, "state", n.State, "why", why)
		if n.Reason == "" {
			n.Reason = why
		}
		if err := s.table.moveNode(n, zkmodel.NodeDeleting, s.epoch()); err != nil {
			return err
		}
		if err := s.store.SaveNode(ctx, lock, n); err != nil {
			return err
		}
		s.own.note(n)
		s.step(StepDeleteMarked)
	}
	if machine {
		if err := s.removeMachine(ctx, n); err != nil {
			return err
		}
		s.step(StepDeleteCloud)
	}
	// Our lock ends within this, so it must not end with our lock.
	if err := s.store.DeleteNode(lock.Session().Context(), lock, n); err != nil { //nolint:contextcheck // see above
		return err
	}
	s.step(StepDeleted)
	s.clouds[n.Provider].roomier()
	s.metrics.deleted(n.Provider)
	s.log.Info("Node is deleted", "node", n.ID, "provider", n.Provider)
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

// removeMachine deletes what a node's record stands for.
func (s *shift) removeMachine(ctx context.Context, n *zkmodel.Node) error {
	p, err := s.clouds[n.Provider].use()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deleteTime, fmt.Errorf("deletion took longer than %s", deleteTime))
	defer cancel()
	ids := []string{n.ExternalID.Text()}
	if n.ExternalID.IsNull() {
		// Its launcher may have died between the cloud's answer and the record.
		if ids, err = s.machinesOf(ctx, p, n); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := p.DeleteNode(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// machinesOf finds the machines that carry a node's id.
func (s *shift) machinesOf(ctx context.Context, p providers.Provider, n *zkmodel.Node) ([]string, error) {
	list, err := p.ListNodes(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range list {
		if m.Metadata[providers.MetaNode] == n.ID && ofSite(m.Metadata, n.Provider, s.site) {
			ids = append(ids, m.ExternalID)
		}
	}
	return ids, nil
}
