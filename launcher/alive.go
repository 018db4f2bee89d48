package launcher

import (
	"context"
	"fmt"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/singleton"
	"poolkeeper/zkmodel"
)

// checkAlive checks the machine of a static node before it is given away. One that
// does not answer, or has other keys, is marked for deletion, and registered anew. It may
// take as long as the machine's timeout, so nothing waits for it but the request.
func (s *session) checkAlive(ctx context.Context, h *requestRun, n *nodeRun) error {
	machine, known := machineOf(h.pool, n.node)
	if !known {
		return s.markDead(ctx, n, fmt.Errorf("%w: it is configured no more", node.ErrNoAnswer))
	}
	keys, err := s.scanner.Alive(ctx, machine)
	if err == nil {
		err = node.SameKeys(n.node, keys)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warn("Static node does not answer as it should; it is registered anew when it does", "node", n.node.ID, "name", n.node.Hostname, "error", err)
		return s.markDead(ctx, n, fmt.Errorf("%w: %w", node.ErrNoAnswer, err))
	}
	return nil
}

// markDead marks a static node for deletion and returns why.
func (s *session) markDead(ctx context.Context, n *nodeRun, why error) error {
	n.node.Reason = why.Error()
	if err := zkmodel.Move(n.node, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	return why
}

// machineOf is the machine of a pool that a static node's record stands for.
func machineOf(p *pool.Pool, n *zkmodel.Node) (configs.StaticNode, bool) {
	number, _ := n.Slot.Int()
	i := slices.IndexFunc(p.Section.Nodes, func(m configs.StaticNode) bool { return singleton.SlotKey(m, number) == singleton.RecordKey(n) })
	if i < 0 {
		return configs.StaticNode{}, false
	}
	return p.Section.Nodes[i], true
}
