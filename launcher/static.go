package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/providers/static"
	"poolkeeper/zkmodel"
)

// staticLauncher is what the records of machines that exist already have for a
// launcher; Nodepool's word.
const staticLauncher = "static driver"

// slotter is a provider whose machines exist already.
type slotter interface{ Slots() []static.Slot }

// slotsAtOnce is how many machines are contacted side by side.
const slotsAtOnce = 32

// keepSlots keeps every slot of a static provider registered as a node: those
// that are missing and live become ready, those that are configured no more go.
// One launcher of all does it, until ctx ends.
func (l *Launcher) keepSlots(ctx context.Context, store *zkmodel.Store, c *cloud) error {
	nodes := l.mirror.SubscribeNodes()
	defer nodes.Close()
	tick := time.NewTicker(l.deps.Resync) // machines come back to life without telling
	defer tick.Stop()
	c.awaitOpen(ctx)
	dead := map[string]bool{} // by slot; not asked again before the next tick
	for {
		nodes.Take()
		if err := l.registerSlots(ctx, store, c, dead); err != nil && ctx.Err() == nil {
			l.log.Warn("Static nodes could not be registered", "provider", c.cfg.Name, "error", err)
		}
		select {
		case <-nodes.C():
		case <-tick.C:
			clear(dead)
		case <-ctx.Done():
			return nil
		}
	}
}

// registerSlots is one pass over all slots. It adds to dead those whose machines
// do not answer, and leaves out those that are in it.
func (l *Launcher) registerSlots(ctx context.Context, store *zkmodel.Store, c *cloud, dead map[string]bool) error {
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
		if n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked && (!known || !l.fits(n, c, slot)) {
			errs = append(errs, l.dropSlot(ctx, store, n.ID, "its configuration has changed"))
		}
	}
	maps.DeleteFunc(wanted, func(key string, _ static.Slot) bool { return dead[key] })
	return errors.Join(append(errs, l.registerAll(ctx, store, c, wanted, dead))...)
}

// registerAll registers slots side by side: one whose machine does not answer holds
// up no other.
func (l *Launcher) registerAll(ctx context.Context, store *zkmodel.Store, c *cloud, wanted map[string]static.Slot, dead map[string]bool) error {
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(slotsAtOnce)
	for key, slot := range wanted {
		group.Go(func() error {
			if err := l.registerSlot(ctx, store, c, slot); err != nil {
				mu.Lock()
				defer mu.Unlock()
				dead[key] = true
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
	return errors.Join(errs...)
}

// fits tells whether a record is what its slot would be registered as today.
func (l *Launcher) fits(n *zkmodel.Node, c *cloud, slot static.Slot) bool {
	return n.Pool == slot.Pool && slices.Equal(n.Type, slot.Node.Labels) &&
		n.ConnectionType == slot.Node.ConnectionType && n.ShellType == slot.Node.ShellType &&
		n.PythonPath == slot.Node.PythonPath && sameJSON(n.Attributes, l.staticAttributes(c, slot.Pool))
}

// sameJSON tells whether two values mean the same; their text may be spaced
// otherwise.
func sameJSON(a, b zkmodel.Value) bool {
	var x, y any
	_ = json.Unmarshal([]byte(a.Text()), &x) // what is no JSON is nothing
	_ = json.Unmarshal([]byte(b.Text()), &y)
	return reflect.DeepEqual(x, y)
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
	v4, v6 := publicAddress(ctx, slot.Node.Name)
	node := slot.Node
	n := &zkmodel.Node{
		Provider: c.cfg.Name, Pool: slot.Pool, Launcher: staticLauncher, Type: node.Labels,
		ExternalID: zkmodel.TextValue(node.Name), Hostname: node.Name, InterfaceIP: node.Name, HostKeys: keys,
		PublicIPv4: v4, PublicIPv6: v6,
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
