package launcher

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/singleton"
	"poolkeeper/zkmodel"
)

// alive checks that a machine can be reached and shows the keys that it is known
// by, and returns its keys. Without host-key-checking it believes the
// configuration.
func alive(ctx context.Context, sc *node.Scanner, n configs.StaticNode) ([]string, error) {
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
		return nil, sc.Reach(ctx, addr)
	}
	keys, err := sc.Keys(ctx, addr)
	if err != nil {
		return nil, err
	}
	for _, known := range n.HostKeys {
		if !slices.Contains(keys, known) {
			return nil, fmt.Errorf("%w: %s does not show the key %s", node.ErrKeyScan, addr, known)
		}
	}
	if len(n.HostKeys) > 0 {
		return n.HostKeys, nil
	}
	return keys, nil
}

// sameKeys checks that a machine still has the keys that its record promises: one that
// was installed anew has others, and whoever is given the old ones cannot log in.
func sameKeys(n *zkmodel.Node, shown []string) error {
	for _, key := range n.HostKeys {
		if !slices.Contains(shown, key) {
			return fmt.Errorf("%w: %s has other keys than when it was registered", node.ErrKeyScan, n.Hostname)
		}
	}
	return nil
}

// checkAlive checks the machine of a static node before it is given away. One that
// does not answer, or has other keys, is marked for deletion, and registered anew. It may
// take as long as the machine's timeout, so nothing waits for it but the request.
func (s *session) checkAlive(ctx context.Context, h *requestRun, n *nodeRun) error {
	machine, known := machineOf(h.pool, n.node)
	if !known {
		return s.markDead(ctx, n, fmt.Errorf("%w: it is configured no more", node.ErrNoAnswer))
	}
	keys, err := alive(ctx, s.scanner, machine)
	if err == nil {
		err = sameKeys(n.node, keys)
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

// resolveTime is how long a machine's name may take to resolve.
const resolveTime = 5 * time.Second

// publicAddress is the address of a machine as jobs are told it: the first that its
// name resolves to, of whichever family. One that does not resolve has none.
func publicAddress(ctx context.Context, name string) (v4, v6 string) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(found) == 0 {
		return "", ""
	}
	if first := found[0].Unmap(); first.Is4() {
		return first.String(), ""
	}
	return "", found[0].String()
}
