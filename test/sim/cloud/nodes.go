package cloud

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// What one machine takes; a cloud with room for n has n times as much.
const (
	cores = 4
	ram   = 8192
)

// CreateNode implements providers.Nodes.
func (h *handle) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	id, err := h.create(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	return id, nil
}

func (h *handle) create(ctx context.Context, spec providers.NodeSpec) (id string, err error) {
	if err := h.agent.pass(); err != nil {
		return "", err
	}
	if err := h.check(spec); err != nil {
		return "", err
	}
	if spec.Asking != nil && ctx.Err() == nil {
		if err := spec.Asking(ctx); err != nil {
			return "", err
		}
	}
	err = h.ask(ctx, OpCreate, func(c *call) error {
		id, err = c.make(spec)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// make makes a machine, or finds that of this launch.
func (c *call) make(spec providers.NodeSpec) (string, error) {
	used := 0
	for _, m := range c.place.nodes {
		if !m.there() {
			continue
		}
		if m.Metadata[providers.MetaNode] == spec.NodeID && m.Metadata[providers.MetaProvider] == c.section.Name &&
			m.Metadata[providers.MetaSite] == spec.Metadata[providers.MetaSite] && providers.SameLaunch(m.Metadata, spec.Metadata) {
			return m.ExternalID, nil
		}
		used++
	}
	if spec.ImageID != "" {
		if i, ok := c.place.images[spec.ImageID]; !ok || !i.there() || !i.active {
			return "", fmt.Errorf("%w: no image %s", providers.ErrNotFound, spec.ImageID)
		}
	}
	if used >= c.place.room {
		return "", fmt.Errorf("%w: all %d instances are taken", providers.ErrQuota, c.place.room)
	}
	if c.fault == Late {
		c.fault = Lost
		// What comes late runs beside the answer: it draws from a source of its own.
		late := *c
		late.rng = rand.New(rand.NewPCG(c.rng.Uint64(), 0))
		within := int64(cmp.Or(c.section.UnansweredCreateTimeout, time.Minute)) / 2
		time.AfterFunc(time.Duration(c.rng.Int64N(within)), func() {
			_ = c.now(func(*call) error { late.put(spec); return nil })
		})
		return "", nil
	}
	if c.fault == Duplicate && used+1 < c.place.room {
		defer c.put(spec)
	}
	return c.put(spec).ExternalID, nil
}

// put makes one machine.
func (c *call) put(spec providers.NodeSpec) *machine {
	now := time.Now()
	m := &machine{
		NodeInfo: providers.NodeInfo{ExternalID: c.cloud.newID(c.place, "node"), Name: spec.Hostname, Metadata: maps.Clone(spec.Metadata)},
		listed:   listed{from: now.Add(c.cloud.lag(c.fault == Stale, c.rng))},
		spec:     spec, zone: c.zone(spec), number: c.cloud.ids, ready: now.Add(c.draw(200)), fails: c.fault == Fails, gone: make(chan struct{}),
	}
	c.cloud.putNode(c.agent.name, c.place, m, c.fault)
	return m
}

// zone is the availability zone of a new machine.
func (c *call) zone(spec providers.NodeSpec) string {
	if spec.AZ != "" {
		return spec.AZ
	}
	for _, pool := range c.section.Pools {
		if pool.Name == spec.Pool && len(pool.AvailabilityZones) > 0 {
			return pool.AvailabilityZones[c.rng.IntN(len(pool.AvailabilityZones))]
		}
	}
	return "az1"
}

// putNode and dropNode are called with the mutex held.
func (c *Cloud) putNode(agent string, p *place, m *machine, by Fault) {
	p.nodes[m.ExternalID] = m
	c.tell(agent, p, OpCreate, m.ExternalID, m.Metadata, by)
}

func (c *Cloud) dropNode(agent string, p *place, id string, lag time.Duration, by Fault) {
	m, ok := p.nodes[id]
	if !ok || !m.there() {
		return
	}
	if m.until = time.Now().Add(lag); lag == 0 {
		delete(p.nodes, id)
	}
	close(m.gone)
	c.tell(agent, p, OpDeleteNode, id, m.Metadata, by)
}

// check finds what could never work.
func (h *handle) check(spec providers.NodeSpec) error {
	label, err := h.label(spec.Pool, spec.Label)
	switch {
	case err != nil:
		return err
	case spec.NodeID == "":
		return fmt.Errorf("%w: no node id", providers.ErrInvalid)
	case spec.ImageID == "" && label.DiskImage != "":
		return fmt.Errorf("%w: pool %s: label %s: no image id for diskimage %s", providers.ErrInvalid, spec.Pool, spec.Label, label.DiskImage)
	}
	return nil
}

func (h *handle) label(pool, name string) (configs.PoolLabel, error) {
	for _, p := range h.section.Pools {
		if p.Name != pool {
			continue
		}
		for _, l := range p.Labels {
			if l.Name == name {
				return l, nil
			}
		}
		return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: pool %s: no label %s", providers.ErrInvalid, h.section.Name, pool, name)
	}
	return configs.PoolLabel{}, fmt.Errorf("%w: provider %s: no pool %s (for label %s)", providers.ErrInvalid, h.section.Name, pool, name)
}

// WaitNode implements providers.Nodes.
func (h *handle) WaitNode(ctx context.Context, externalID string) (providers.Instance, error) {
	m, err := h.await(ctx, externalID)
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
	}
	address := fmt.Sprintf("10.%d.%d.%d", m.number>>16&255, m.number>>8&255, m.number&255)
	return providers.Instance{
		ExternalID: externalID, Cloud: h.place.name, Region: "simulated", AZ: m.zone, HostID: "host-" + m.zone,
		InterfaceIP: address, PublicIPv4: address, PrivateIPv4: address,
		HostKeys: []string{"ssh-ed25519 U0lNVUxBVEVE"}, SkipHostScan: true,
	}, nil
}

func (h *handle) await(ctx context.Context, id string) (m *machine, err error) {
	c, err := h.begin(ctx, OpWait)
	if err != nil {
		return nil, err
	}
	find := func(*call) error {
		var ok bool
		if m, ok = h.place.nodes[id]; !ok || !m.there() {
			return providers.ErrNotFound
		}
		return nil
	}
	if err := c.send(ctx, find); err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Until(m.ready))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.gone:
	case <-h.agent.dead:
		return nil, ErrCrashed
	case <-ctx.Done():
		return nil, cmp.Or(h.agent.pass(), context.Cause(ctx))
	}
	if err := c.now(find); err != nil {
		return nil, cmp.Or(h.agent.pass(), err)
	}
	if err := c.answer(ctx); err != nil {
		return nil, err
	}
	if m.fails {
		return nil, fmt.Errorf("%w: it did not boot", providers.ErrNodeFailed)
	}
	return m, nil
}

// DeleteNode implements providers.Nodes.
func (h *handle) DeleteNode(ctx context.Context, externalID string) error {
	err := h.ask(ctx, OpDeleteNode, func(c *call) error {
		h.cloud.dropNode(h.agent.name, h.place, externalID, h.cloud.lag(c.fault == Stale, c.rng), c.fault)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete node %s: %w", externalID, err)
	}
	return nil
}

// ListNodes implements providers.Nodes, sorted by external id.
func (h *handle) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	var list []providers.NodeInfo
	err := h.ask(ctx, OpListNodes, func(*call) error {
		now := time.Now()
		for id, m := range h.place.nodes {
			switch {
			case !m.there() && !m.at(now):
				delete(h.place.nodes, id)
			case m.at(now) && m.Metadata[providers.MetaProvider] == h.section.Name:
				list = append(list, m.clone())
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	slices.SortFunc(list, func(a, b providers.NodeInfo) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list, nil
}

// ConsoleLog implements providers.Nodes.
func (h *handle) ConsoleLog(_ context.Context, externalID string, limit int) ([]byte, error) {
	text := "console of " + externalID + "\n"
	return []byte(text[max(0, len(text)-limit):]), nil
}

// Limits implements providers.Nodes. What others use is taken off.
func (h *handle) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	n := 0
	err := h.ask(ctx, OpLimits, func(c *call) error {
		n = h.place.room
		for _, m := range h.place.nodes {
			others := m.Metadata[providers.MetaProvider] != h.section.Name
			if ours != nil {
				others = !ours(m.clone())
			}
			if m.there() && others {
				n--
			}
		}
		switch c.fault {
		case More:
			n += 1 + c.rng.IntN(5)
		case Less:
			n -= 1 + c.rng.IntN(5)
		default:
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	n = max(n, 0)
	return providers.Resources{providers.Instances: n, providers.Cores: n * cores, providers.RAM: n * ram}, nil
}

// NodeResources implements providers.Nodes.
func (h *handle) NodeResources(_ context.Context, pool, label string) (providers.Resources, error) {
	if _, err := h.label(pool, label); err != nil {
		return nil, fmt.Errorf("size node: %w", err)
	}
	return providers.Resources{providers.Instances: 1, providers.Cores: cores, providers.RAM: ram}, nil
}
