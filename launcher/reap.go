package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// reap does what is due, under the node's lock and after a second look at it.
func (s *session) reap(ctx context.Context, c reap.Reaping) error {
	id := c.Node.ID
	lock, n, err := s.store.LockNode(ctx, id, "")
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return nil
	case err != nil:
		s.log.Debug("Node is somebody else's", "node", id, "error", err)
		return err
	}
	s.step(step.DeleteLocked)
	s.own.Note(n)
	defer s.own.FinishNode(id)
	bound, cancel := lock.Bind(ctx)
	defer cancel()
	err = s.reapLocked(bound, lock, n, c)
	if err != nil && ctx.Err() == nil {
		s.tells.nodes.Failed(s.log, err, "Node is left alone for a moment", "node", id, "state", n.State)
	}
	cleanup, done := s.cleanupContext(ctx)
	defer done()
	return errors.Join(err, lock.Release(cleanup))
}

// reapLocked does what is due with a node that we have locked and read afresh.
func (s *session) reapLocked(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, c reap.Reaping) error {
	if n.Broken != nil {
		if c.Node.Broken == nil || !n.Leftover() {
			return nil
		}
		return s.removeNowhere(ctx, lock, n)
	}
	if n.State != c.Node.State || c.Duty != reap.DutyAdopt && s.duties.Node(n.State) != c.Duty {
		return nil // somebody moved it; the next look decides anew
	}
	switch c.Duty {
	case reap.DutyAdopt:
		return s.adopt(ctx, lock, n)
	case reap.DutySettle:
		return s.settleNode(ctx, lock, n, c.Why)
	case reap.DutyRecover, reap.DutyExpire, reap.DutyRemove:
		if reap.NoProvider(n) {
			return s.removeNowhere(ctx, lock, n)
		}
		if err := s.launchOver(ctx, n); err != nil {
			return err
		}
		return s.remove(ctx, lock, n, c.Why)
	case reap.DutyNone, reap.DutyAssign, reap.DutyReclaim:
	}
	return nil
}

// removeNowhere removes the record of a node that names no provider, once every
// configured cloud was listed and none has a machine with its id.
func (s *session) removeNowhere(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	for name, c := range s.clouds {
		p, err := c.Use()
		if err != nil {
			return err
		}
		list, err := p.ListNodes(ctx)
		if err != nil && !errors.Is(err, providers.ErrNotSupported) {
			return fmt.Errorf("look for a machine of node %s in %s: %w", n.ID, name, err)
		}
		for _, m := range list {
			if m.Metadata[providers.MetaNode] == n.ID && providers.OfSite(m.Metadata, name, s.site) {
				return fmt.Errorf("node %s names no provider, and machine %s in %s has its id: %w", n.ID, m.ExternalID, name, zkmodel.ErrConflict)
			}
		}
	}
	// The lock is below the record, so it ends within this.
	if err := lock.DeleteTree(lock.Session().Context(), n.Path()); err != nil { //nolint:contextcheck // see above
		return err
	}
	s.log.Info("Record of a node without a provider is deleted; no cloud has its machine", "node", n.ID)
	return nil
}

// launchOver makes sure that nobody goes on with the launch of a node: its request is
// proven to be gone, or waits, or is done. zkmodel.ErrConflict says that somebody does.
func (s *session) launchOver(ctx context.Context, n *zkmodel.Node) error {
	if !reap.InLaunch(n) || n.AllocatedTo == "" {
		return nil
	}
	r, err := s.store.Request(ctx, n.AllocatedTo)
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		_, err := s.mirror.Absent(ctx, s.store.Session(), zkmodel.RequestPath(n.AllocatedTo))
		return err
	case err != nil:
		return err
	case r.Broken != nil || r.State == zkmodel.RequestPending:
		return fmt.Errorf("node %s belongs to request %s, which may be pending: %w", n.ID, r.ID, zkmodel.ErrConflict)
	}
	return nil
}

// settleNode gives a ready node whose request is gone back for others to use, or
// ends one that nobody wanted for too long.
func (s *session) settleNode(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	if n.AllocatedTo == "" {
		r := s.rules()
		r.Lag = s.ahead()
		r.Frozen = s.frozenNodes([]*zkmodel.Node{n})
		if _, _, due := reap.Ready(n, r); !r.Useless(n) && (due.IsZero() || due.After(s.now())) {
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
func (s *session) remove(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, why string) error {
	machine := mayHaveMachine(n)
	if n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted {
		was := n.State
		if n.Reason == "" {
			n.Reason = why
		}
		if err := zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()); err != nil {
			return err
		}
		if err := s.store.SaveNode(ctx, lock, n); err != nil {
			return err
		}
		s.log.Info("Deleting node", "node", n.ID, "provider", n.Provider, "state", was, "why", why)
		s.own.Note(n)
		s.step(step.DeleteMarked)
	}
	if machine {
		if err := s.removeMachine(ctx, lock, n); err != nil {
			return err
		}
		s.step(step.DeleteCloud)
	}
	// Our lock ends within this, so it must not end with our lock.
	if err := s.store.DeleteNode(lock.Session().Context(), lock, n); err != nil { //nolint:contextcheck // see above
		return err
	}
	s.step(step.Deleted)
	s.metrics.Deleted(n.Provider)
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

// removeMachine deletes what a node's record stands for, which we have read under
// its lock.
func (s *session) removeMachine(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	c := s.clouds[n.Provider]
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
		ids, err = s.search(ctx, p, n, nil, func(left time.Duration) error {
			s.log.Info("Node keeps its place while its machine may still be made", "node", n.ID, "provider", n.Provider,
				"asked", n.Asked.Time(), "left", left.Round(time.Second))
			return nil
		})
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, deleteTime, fmt.Errorf("deletion took longer than %s", deleteTime))
	defer cancel()
	for _, id := range ids {
		if err := c.Remove(ctx, proof, n.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// machinesOf finds the machines that carry a node's id, and none of another launch.
func (s *session) machinesOf(ctx context.Context, p supply.Machines, n *zkmodel.Node) ([]string, error) {
	list, err := p.ListNodes(ctx)
	if err != nil {
		return nil, err
	}
	launch, err := s.store.LaunchOf(ctx, n)
	if err != nil {
		return nil, err
	}
	mark := map[string]string{providers.MetaLaunch: launch}
	var ids []string
	for _, m := range list {
		if m.Metadata[providers.MetaNode] == n.ID && providers.OfSite(m.Metadata, n.Provider, s.site) && providers.SameLaunch(m.Metadata, mark) {
			ids = append(ids, m.ExternalID)
		}
	}
	return ids, nil
}
