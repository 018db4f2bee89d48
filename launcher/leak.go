package launcher

import (
	"context"
	"errors"
	"path"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// collect starts the search for what nobody owns any more: machines without a
// record, and lock folders of requests that are gone.
func (s *shift) collect(ctx context.Context) {
	for _, c := range s.clouds {
		s.jobs.start("leaks "+c.cfg.Name, func() error { return s.collectMachines(ctx, c) })
	}
	s.jobs.start("request locks", func() error { return s.collectLocks(ctx) })
}

// collectMachines deletes the machines of a provider that carry our name and the
// id of a node that is not in the tree. It takes two looks, one resync apart: a
// machine is deleted when it was missing in both.
func (s *shift) collectMachines(ctx context.Context, c *cloud) error {
	p, err := c.use()
	if err != nil {
		return err
	}
	list, err := p.ListNodes(ctx)
	if err != nil {
		s.log.Warn("Cannot look for leaked machines", "provider", c.cfg.Name, "error", err)
		return err
	}
	// A record is made before its machine, so after a barrier the mirror knows
	// the record of every machine in the list that ever had one.
	if err := s.mirror.Barrier(ctx); err != nil {
		return err
	}
	suspects := map[string]bool{}
	for _, m := range list {
		node := m.Metadata[providers.MetaNode]
		if node == "" || m.Metadata[providers.MetaProvider] != c.cfg.Name || s.mirror.Node(node) != nil {
			continue
		}
		suspects[m.ExternalID] = true
		if !c.suspected(m.ExternalID) {
			continue
		}
		s.log.Warn("Deleting a machine without a record", "provider", c.cfg.Name, "node", node, "external_id", m.ExternalID)
		if err := p.DeleteNode(ctx, m.ExternalID); err != nil {
			s.log.Warn("Cannot delete a leaked machine", "provider", c.cfg.Name, "external_id", m.ExternalID, "error", err)
			continue
		}
		s.metrics.leaked(c.cfg.Name)
		delete(suspects, m.ExternalID)
		c.roomier()
	}
	c.suspect(suspects)
	return nil
}

// collectLocks removes the lock folders of requests that are gone. A folder with
// a contender in it cannot be removed, and is not.
func (s *shift) collectLocks(ctx context.Context) error {
	session := s.store.Session()
	ids, err := session.Children(ctx, zkmodel.LocksRoot)
	if err != nil {
		return err
	}
	if err := s.mirror.Barrier(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		if s.mirror.Request(id) != nil {
			continue
		}
		err := session.Delete(ctx, path.Join(zkmodel.LocksRoot, id), recipe.AnyVersion)
		if err != nil && !errors.Is(err, recipe.ErrNotEmpty) && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
	return nil
}
