package launcher

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// locksAtOnce is how many lock folders one transaction removes.
const locksAtOnce = 100

// patrol looks for leaks in a provider, now and then; one launcher of all does.
func (l *Launcher) patrol(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	tick := time.NewTicker(l.deps.Resync)
	defer tick.Stop()
	site, err := store.SiteID(ctx)
	if err != nil {
		return err
	}
	c.awaitOpen(ctx)
	for {
		err := l.collectMachines(ctx, c, site)
		if err == nil {
			err = l.collectRest(ctx, c)
		}
		if err != nil && ctx.Err() == nil {
			l.log.Warn("Cannot look for leaks", "provider", c.cfg.Name, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ofSite tells whether a machine of a provider is this installation's. Another one
// may share the cloud, call its provider alike and count its nodes from 0, too.
// What carries no installation's name is Nodepool's, with whom we share the tree.
func ofSite(metadata map[string]string, provider, site string) bool {
	made := metadata[providers.MetaSite]
	return metadata[providers.MetaProvider] == provider && (made == "" || made == site)
}

// collectRest cleans what belongs to machines in a cloud and may outlive them.
func (l *Launcher) collectRest(ctx context.Context, c *cloud) error {
	p, err := c.use()
	if err != nil {
		return err
	}
	cleaner, ok := p.(providers.Cleaner)
	if !ok {
		return nil
	}
	deleted, err := cleaner.CleanLeaks(ctx)
	for kind, n := range deleted {
		l.log.Info("Leaked things are deleted", "provider", c.cfg.Name, "kind", kind, "count", n)
	}
	return err
}

// collectMachines deletes the machines of a provider that carry our name and the
// id of a node that is not in the tree. It takes two looks, one resync apart: a
// machine is deleted when it was missing in both.
func (l *Launcher) collectMachines(ctx context.Context, c *cloud, site string) error {
	p, err := c.use()
	if err != nil {
		return err
	}
	list, err := p.ListNodes(ctx)
	if err != nil {
		return err
	}
	// A record is made before its machine, so after a barrier the mirror knows
	// the record of every machine in the list that ever had one.
	if err := l.mirror.Barrier(ctx); err != nil {
		return err
	}
	suspects := map[string]bool{}
	for _, m := range list {
		node := m.Metadata[providers.MetaNode]
		if node == "" || !ofSite(m.Metadata, c.cfg.Name, site) || l.mirror.Node(node) != nil {
			continue
		}
		suspects[m.ExternalID] = true
		if !c.suspected(m.ExternalID) {
			continue
		}
		l.log.Warn("Deleting a machine without a record", "provider", c.cfg.Name, "node", node, "external_id", m.ExternalID)
		if err := p.DeleteNode(ctx, m.ExternalID); err != nil {
			l.log.Warn("Cannot delete a leaked machine", "provider", c.cfg.Name, "external_id", m.ExternalID, "error", err)
			continue
		}
		l.metrics.leaked(c.cfg.Name)
		delete(suspects, m.ExternalID)
		c.roomier()
	}
	c.suspect(suspects)
	return nil
}

// clearUp removes what requests left that are gone, and requests that nobody wants
// any more. The leader of all launchers does it, behind the fence of its leadership.
func (l *Launcher) clearUp(ctx context.Context, h *recipe.Held) error {
	return errors.Join(l.collectLocks(ctx, h), l.dropStock(ctx, h))
}

// collectLocks removes the lock folders of requests that are gone. A folder with
// a contender in it cannot be removed, and is not.
func (l *Launcher) collectLocks(ctx context.Context, h *recipe.Held) error {
	ids, err := h.Session().Children(ctx, zkmodel.LocksRoot)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil // nobody has asked for a node yet
	}
	if err != nil {
		return err
	}
	if err := l.mirror.Barrier(ctx); err != nil {
		return err
	}
	var gone []recipe.Op
	for _, id := range ids {
		if l.mirror.Request(id) == nil {
			gone = append(gone, recipe.OpDelete(path.Join(zkmodel.LocksRoot, id), recipe.AnyVersion))
		}
	}
	for batch := range slices.Chunk(gone, locksAtOnce) {
		if _, err := h.Multi(ctx, batch...); err == nil {
			continue
		}
		for _, op := range batch { // one of them has a contender, or is gone
			_, err := h.Multi(ctx, op)
			if err != nil && !errors.Is(err, recipe.ErrNotEmpty) && !errors.Is(err, recipe.ErrNoNode) {
				return err
			}
		}
	}
	return nil
}
