package launcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers/static"
	"poolkeeper/zkmodel"
)

// staticLauncher is what the records of machines that exist already have for a
// launcher; Nodepool's word.
const staticLauncher = "static driver"

// slotter is a provider whose machines exist already.
type slotter interface{ Slots() []static.Slot }

// keepSlots keeps every slot of a static provider registered as a node: those
// that are missing and live become ready, those that are configured no more go.
// One launcher of all does it, until ctx ends.
func (l *Launcher) keepSlots(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	nodes := l.mirror.SubscribeNodes()
	defer nodes.Close()
	tick := time.NewTicker(l.deps.Resync) // machines come back to life without telling
	defer tick.Stop()
	c.awaitOpen(ctx)
	for {
		nodes.Take()
		if err := l.registerSlots(ctx, store, c); err != nil && ctx.Err() == nil {
			l.log.Warn("Static nodes could not be registered", "provider", c.cfg.Name, "error", err)
		}
		select {
		case <-nodes.C():
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// registerSlots is one pass over all slots.
func (l *Launcher) registerSlots(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	p, err := c.use()
	if err != nil {
		return err
	}
	s, ok := p.(slotter)
	if !ok {
		return nil
	}
	if err := l.mirror.Barrier(ctx); err != nil { // shows what the last pass made
		return err
	}
	wanted := map[string]static.Slot{}
	for _, slot := range s.Slots() {
		wanted[slotKey(slot.Node, slot.Number)] = slot
	}
	var errs []error
	for _, n := range l.mirror.Nodes() {
		if n.Broken != nil || n.Provider != c.cfg.Name {
			continue
		}
		key := recordKey(n)
		slot, known := wanted[key]
		delete(wanted, key)
		if n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked && (!known || !slices.Equal(n.Type, slot.Node.Labels)) {
			errs = append(errs, l.dropSlot(ctx, store, n.ID, "its configuration has changed"))
		}
	}
	for _, slot := range s.Slots() {
		if _, missing := wanted[slotKey(slot.Node, slot.Number)]; missing {
			errs = append(errs, l.registerSlot(ctx, store, c, slot))
		}
	}
	return errors.Join(errs...)
}

// slotKey names a slot: a machine is its name, account and port.
func slotKey(n configs.StaticNode, number int) string {
	return fmt.Sprintf("%s %s %d %d", n.Name, n.Username, n.ConnectionPort, number)
}

// recordKey is the slotKey of a node's record.
func recordKey(n *zkmodel.Node) string {
	port, _ := n.ConnectionPort.Int()
	number, _ := n.Slot.Int()
	return fmt.Sprintf("%s %s %d %d", n.Hostname, n.Username, port, number)
}

// registerSlot makes a ready node of a slot whose machine lives.
func (l *Launcher) registerSlot(ctx context.Context, store *zkmodel.Store, c *cloud, slot static.Slot) error {
	keys, err := l.alive(ctx, slot.Node)
	if err != nil {
		return fmt.Errorf("register static node %s: %w", slot.Node.Name, err)
	}
	node := slot.Node
	n := &zkmodel.Node{
		Provider: c.cfg.Name, Pool: slot.Pool, Launcher: staticLauncher, Type: node.Labels,
		ExternalID: zkmodel.TextValue(node.Name), Hostname: node.Name, InterfaceIP: node.Name, HostKeys: keys,
		Username: node.Username, ConnectionType: node.ConnectionType, ConnectionPort: zkmodel.IntValue(node.ConnectionPort),
		ShellType: node.ShellType, PythonPath: node.PythonPath, Slot: zkmodel.IntValue(slot.Number),
		Attributes: l.staticAttributes(c, slot.Pool), Resources: map[string]int{"instances": 1},
	}
	lock, err := store.CreateNode(ctx, n)
	if err != nil {
		return err
	}
	n.SetState(zkmodel.NodeReady, zkmodel.EpochOf(l.now()))
	err = store.SaveNode(ctx, lock, n)
	l.log.Info("Static node is ready", "node", n.ID, "name", node.Name, "slot", slot.Number)
	return errors.Join(err, lock.Release(ctx))
}

// staticAttributes are the node-attributes of a pool.
func (l *Launcher) staticAttributes(c *cloud, pool string) zkmodel.Value {
	for _, p := range c.cfg.Pools {
		if p.Name == pool {
			return attributes(p.NodeAttributes)
		}
	}
	return zkmodel.Value{}
}

// dropSlot marks a node for deletion that is ready and nobody's.
func (l *Launcher) dropSlot(ctx context.Context, store *zkmodel.Store, id, why string) error {
	lock, n, err := store.LockNode(ctx, id, "")
	if err != nil {
		return taken(err)
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = why
		if err = l.table.moveNode(n, zkmodel.NodeDeleting, zkmodel.EpochOf(l.now())); err == nil {
			err = store.SaveNode(ctx, lock, n)
		}
	}
	return errors.Join(err, lock.Release(ctx))
}

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

// stillAlive checks the machine of a static node before it is given away. One
// that does not answer is registered anew when it does.
func (s *shift) stillAlive(ctx context.Context, h *handling, n *zkmodel.Node) error {
	if h.pool.provider.Driver != configs.DriverStatic {
		return nil
	}
	for _, node := range h.pool.config.Nodes {
		number, _ := n.Slot.Int()
		if slotKey(node, number) == recordKey(n) {
			_, err := s.alive(ctx, node)
			return err
		}
	}
	return fmt.Errorf("static node %s is configured no more: %w", n.Hostname, ErrTaken)
}
