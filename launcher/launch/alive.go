package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// checkAlive checks the machine of a static node before it is given away. One that
// does not answer, or has other keys, is marked for deletion, and registered anew. It may
// take as long as the machine's timeout, so nothing waits for it but the request.
func (l *Launches) checkAlive(ctx context.Context, o *Order, n *Run) (failed error) {
	span := o.Span.Begin("node").Set("node", n.Node.ID).Set("label", n.Place.Label).Set("provider", n.Node.Provider).Set("pool", n.Node.Pool)
	defer func() { span.End(failed) }()
	machine, known := machineOf(o.Pool, n.Node)
	if !known {
		return l.markDead(ctx, n, fmt.Errorf("%w: it is configured no more", node.ErrNoAnswer))
	}
	keys, err := l.Scanner.Alive(ctx, machine)
	if err == nil {
		err = node.SameKeys(n.Node, keys)
	}
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.Span.Log(l.Log).Warn("Static node does not answer as it should; it is registered anew when it does", "request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "name", n.Node.Hostname, "error", err)
		return l.markDead(ctx, n, fmt.Errorf("%w: %w", node.ErrNoAnswer, err))
	}
	return nil
}

// markDead marks a static node for deletion and returns why.
func (l *Launches) markDead(ctx context.Context, n *Run, why error) error {
	was := *n.Node
	n.Node.Reason = why.Error()
	if err := zkmodel.Move(n.Node, zkmodel.NodeDeleting, zkmodel.ByUs, l.epoch()); err != nil {
		return err
	}
	if err := l.Save(ctx, n); err != nil {
		*n.Node = was // it is given back as it is
		return errors.Join(why, err)
	}
	return why
}

// machineOf is the machine of a pool that a static node's record stands for.
func machineOf(p *pool.Pool, n *zkmodel.Node) (configs.StaticNode, bool) {
	number, _ := n.Slot.Int()
	i := slices.IndexFunc(p.Section.Nodes, func(m configs.StaticNode) bool { return schedule.SlotKey(m, number) == schedule.RecordKey(n) })
	if i < 0 {
		return configs.StaticNode{}, false
	}
	return p.Section.Nodes[i], true
}
