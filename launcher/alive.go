package launcher

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// alive checks that a machine can be reached and shows the keys that it is known
// by, and returns its keys. Without host-key-checking it believes the
// configuration.
func (l *Launcher) alive(ctx context.Context, n configs.StaticNode) ([]string, error) {
	if !n.HostKeyChecking {
		return n.HostKeys, nil
	}
	if n.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, n.Timeout, fmt.Errorf("timeout of %s is over", n.Timeout))
		defer cancel()
	}
	addr := net.JoinHostPort(n.Name, strconv.Itoa(n.ConnectionPort))
	if n.ConnectionType != "ssh" && n.ConnectionType != "network_cli" {
		return nil, l.scanner.reach(ctx, addr)
	}
	keys, err := l.scanner.keys(ctx, addr)
	if err != nil {
		return nil, err
	}
	for _, known := range n.HostKeys {
		if !slices.Contains(keys, known) {
			return nil, fmt.Errorf("%w: %s does not show the key %s", ErrKeyScan, addr, known)
		}
	}
	if len(n.HostKeys) > 0 {
		return n.HostKeys, nil
	}
	return keys, nil
}

// checkAlive checks the machine of a static node before it is given away. One that
// does not answer is marked for deletion, and registered anew when it does. It may
// take as long as the machine's timeout, so nothing waits for it but the request.
func (s *shift) checkAlive(ctx context.Context, h *handling, n *handled) error {
	node, known := h.pool.machine(n.node)
	if !known {
		return s.bury(ctx, n, fmt.Errorf("%w: it is configured no more", ErrNoAnswer))
	}
	if _, err := s.alive(ctx, node); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warn("Static node does not answer", "node", n.node.ID, "name", n.node.Hostname, "error", err)
		return s.bury(ctx, n, fmt.Errorf("%w: %w", ErrNoAnswer, err))
	}
	return nil
}

// bury marks a static node for deletion and returns why.
func (s *shift) bury(ctx context.Context, n *handled, why error) error {
	n.node.Reason = why.Error()
	if err := s.table.moveNode(n.node, zkmodel.NodeDeleting, s.epoch()); err != nil {
		return err
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	return why
}

// machine is the machine that a static node's record stands for.
func (p *pool) machine(n *zkmodel.Node) (configs.StaticNode, bool) {
	number, _ := n.Slot.Int()
	i := slices.IndexFunc(p.config.Nodes, func(m configs.StaticNode) bool { return slotKey(m, number) == recordKey(n) })
	if i < 0 {
		return configs.StaticNode{}, false
	}
	return p.config.Nodes[i], true
}
