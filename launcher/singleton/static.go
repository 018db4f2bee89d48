package singleton

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// StaticCloud is a provider whose machines exist already.
type StaticCloud interface {
	// Slots are its machines; providers.ErrNotSupported when it is none of that kind.
	Slots() ([]providers.Slot, error)
}

// StaticView is what Static sees of the tree.
type StaticView interface {
	Nodes() []*zkmodel.Node
	Barrier(ctx context.Context) error
	Listed(path string) error
}

// StaticMachines contacts machines.
type StaticMachines interface {
	// Alive returns the host keys of a machine that answers.
	Alive(ctx context.Context, n configs.StaticNode) ([]string, error)
	// Address is the address of a machine as jobs are told it.
	Address(ctx context.Context, name string) (v4, v6 string)
}

// StaticRecords changes the records of nodes.
type StaticRecords interface {
	// CreateReady makes the record of a node that is ready, and fills in its ID.
	CreateReady(ctx context.Context, n *zkmodel.Node) error
	// Retire marks a node for deletion, should it still be ready and nobody's.
	Retire(ctx context.Context, id, why string) error
	// LaunchOf is the id of a node's launch, "" when nobody knows it; slots are not launched.
	LaunchOf(ctx context.Context, n *zkmodel.Node) (string, error)
}

// Static keeps every slot of a static provider registered as a node: those
// that are missing and live become ready, those that are configured no more go.
type Static struct {
	cfg      *configs.Config
	provider configs.Provider
	cloud    StaticCloud
	view     StaticView
	machines StaticMachines
	records  StaticRecords
	log      hclog.Logger

	told recipe.Throttle // of passes that fail: each change of a node is one
	dead map[string]bool // slots whose machines did not answer; asked again at the next tick
}

// NewStatic makes a Static for a provider.
func NewStatic(
	cfg *configs.Config, provider configs.Provider, cloud StaticCloud, view StaticView, machines StaticMachines, records StaticRecords, log hclog.Logger,
) *Static {
	return &Static{
		cfg: cfg, provider: provider, cloud: cloud, view: view, machines: machines, records: records, log: log, dead: map[string]bool{},
	}
}

// slotsAtOnce is how many machines are contacted side by side.
const slotsAtOnce = 32

// Run does it until ctx ends, whenever a node has changed; and every so often, as
// machines come back to life without telling.
func (s *Static) Run(ctx context.Context, nodes Changes, every time.Duration) error {
	tick := clock.NewTicker(ctx, every)
	defer tick.Stop()
	for {
		nodes.Take()
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.told.Warn(s.log, "Static nodes could not be registered", "provider", s.provider.Name, "error", err)
		}
		select {
		case <-nodes.C():
		case <-tick.C:
			clear(s.dead)
		case <-ctx.Done():
			return nil
		}
	}
}

// pass is one pass over all slots. It adds to dead those whose machines
// do not answer, and leaves out those that are in it.
func (s *Static) pass(ctx context.Context) error {
	slots, err := s.cloud.Slots()
	if errors.Is(err, providers.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.view.Barrier(ctx); err != nil { // shows what the last pass made
		return err
	}
	if err := s.unknownNodes(ctx); err != nil {
		return fmt.Errorf("no slot is registered, as it may be registered already: %w", err)
	}
	wanted := map[string]providers.Slot{}
	for _, slot := range slots {
		wanted[schedule.SlotKey(slot.Node, slot.Number)] = slot
	}
	var errs []error
	for _, n := range s.view.Nodes() {
		if n.Broken != nil || n.Provider != s.provider.Name {
			continue
		}
		key := schedule.RecordKey(n)
		slot, known := wanted[key]
		delete(wanted, key)
		if s.cfg.FrozenNodes(s.provider.Name, n.Pool, n.Hostname) != "" {
			continue
		}
		if n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked && (!known || !s.fits(n, slot)) {
			errs = append(errs, s.records.Retire(ctx, n.ID, "its configuration has changed"))
		}
	}
	maps.DeleteFunc(wanted, func(key string, slot providers.Slot) bool {
		return s.dead[key] || s.cfg.FrozenNodes(s.provider.Name, slot.Pool, slot.Node.Name) != ""
	})
	return errors.Join(append(errs, s.registerAll(ctx, wanted))...)
}

// unknownNodes says whether there may be slots of which we know nothing. A record that
// cannot be read is none when its node was launched.
func (s *Static) unknownNodes(ctx context.Context) error {
	if err := s.view.Listed(zkmodel.NodesRoot); err != nil {
		return err
	}
	for _, n := range s.view.Nodes() {
		if !n.Unknown() {
			continue
		}
		launch, err := s.records.LaunchOf(ctx, n)
		if err != nil {
			return err
		}
		if launch == "" || n.Stat.Czxid == 0 { // whose the launch is can then not be told
			return fmt.Errorf("read node %s: %w", n.ID, n.Broken)
		}
	}
	return nil
}

// registerAll registers slots side by side: one whose machine does not answer holds
// up no other.
func (s *Static) registerAll(ctx context.Context, wanted map[string]providers.Slot) error {
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(slotsAtOnce)
	for key, slot := range wanted {
		group.Go(func() error {
			if err := s.registerSlot(ctx, slot); err != nil {
				mu.Lock()
				defer mu.Unlock()
				s.dead[key] = true
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
	return errors.Join(errs...)
}

// fits reports whether a record is what its slot would be registered as today.
func (s *Static) fits(n *zkmodel.Node, slot providers.Slot) bool {
	return n.Pool == slot.Pool && slices.Equal(n.Type, slot.Node.Labels) &&
		n.ConnectionType == slot.Node.ConnectionType && n.ShellType == slot.Node.ShellType &&
		n.PythonPath == slot.Node.PythonPath && (len(slot.Node.HostKeys) == 0 || slices.Equal(n.HostKeys, slot.Node.HostKeys)) &&
		sameJSON(n.Attributes, s.attributes(slot.Pool))
}

// sameJSON reports whether two values mean the same; their text may be spaced
// otherwise.
func sameJSON(a, b zkmodel.Value) bool {
	var x, y any
	_ = json.Unmarshal([]byte(a.Text()), &x) // what is no JSON is nothing
	_ = json.Unmarshal([]byte(b.Text()), &y)
	return reflect.DeepEqual(x, y)
}

// registerSlot makes a ready node of a slot whose machine lives.
func (s *Static) registerSlot(ctx context.Context, slot providers.Slot) error {
	keys, err := s.machines.Alive(ctx, slot.Node)
	if err != nil {
		return fmt.Errorf("register static node %s: %w", slot.Node.Name, err)
	}
	v4, v6 := s.machines.Address(ctx, slot.Node.Name)
	node := slot.Node
	n := &zkmodel.Node{
		Provider: s.provider.Name, Pool: slot.Pool, Launcher: schedule.StaticLauncher, Type: node.Labels,
		ExternalID: zkmodel.TextValue(node.Name), Hostname: node.Name, InterfaceIP: node.Name, HostKeys: keys,
		PublicIPv4: v4, PublicIPv6: v6,
		Username: node.Username, ConnectionType: node.ConnectionType, ConnectionPort: zkmodel.IntValue(node.ConnectionPort),
		ShellType: node.ShellType, PythonPath: node.PythonPath, Slot: zkmodel.IntValue(slot.Number),
		Attributes: s.attributes(slot.Pool), Resources: map[string]int{"instances": 1},
	}
	if err := s.records.CreateReady(ctx, n); err != nil {
		return err
	}
	s.log.Info("Static node is ready", "node", n.ID, "name", node.Name, "slot", slot.Number)
	return nil
}

// attributes are the node-attributes of a pool.
func (s *Static) attributes(pool string) zkmodel.Value {
	for _, p := range s.provider.Pools {
		if p.Name == pool {
			return zkmodel.ObjectValue(p.NodeAttributes)
		}
	}
	return zkmodel.Value{}
}
