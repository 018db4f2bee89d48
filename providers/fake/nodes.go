package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
)

// CreateNode implements providers.Nodes. Any image id will do: builder and
// launcher are separate processes and need not share this cloud's state.
func (p *Provider) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	id, err := p.create(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	return id, nil
}

func (p *Provider) create(ctx context.Context, spec providers.NodeSpec) (string, error) {
	if err := p.before(ctx, OpCreate, spec.NodeID); err != nil {
		return "", err
	}
	if err := p.check(spec); err != nil {
		return "", err
	}
	n := node{
		ID: newID(), NodeID: spec.NodeID, Name: spec.Hostname, AZ: p.zone(spec),
		Image: spec.ImageID, Metadata: maps.Clone(spec.Metadata), Ready: now().Add(p.fake.BootDelay),
	}
	id := n.ID
	err := p.ledger.change(func(s *state) (_ *event, err error) {
		if first, ok := s.byNode[spec.NodeID]; ok && providers.SameLaunch(s.nodes[first].Metadata, spec.Metadata) {
			id = first
			return nil, nil
		}
		if len(s.nodes) >= p.room() {
			return nil, fmt.Errorf("%w: all %d instances are taken", providers.ErrQuota, p.fake.MaxInstances)
		}
		if n.Address, err = p.address(s); err != nil {
			return nil, err
		}
		return &event{Node: &n}, nil
	})
	if err != nil {
		return "", err
	}
	return id, p.after(ctx, OpCreate, spec.NodeID)
}

// check finds what could never work.
func (p *Provider) check(spec providers.NodeSpec) error {
	label, err := p.label(spec.Pool, spec.Label)
	switch {
	case err != nil:
		return err
	case spec.NodeID == "":
		return fmt.Errorf("%w: no node id", providers.ErrInvalid)
	case spec.ImageID == "" && label.DiskImage != "":
		return fmt.Errorf("%w: pool %s: label %s: no image id for diskimage %s",
			providers.ErrInvalid, spec.Pool, spec.Label, label.DiskImage)
	}
	return failing(spec.Metadata, label.InstanceProperties)
}

// zone is the availability zone of a new machine.
func (p *Provider) zone(spec providers.NodeSpec) string {
	if spec.AZ != "" {
		return spec.AZ
	}
	all := zones()
	for _, pool := range p.cfg.Pools {
		if pool.Name == spec.Pool && len(pool.AvailabilityZones) > 0 {
			all = pool.AvailabilityZones
		}
	}
	return all[int(p.spread.Add(1)-1)%len(all)]
}

// WaitNode implements providers.Nodes. A deletion by this process ends it at
// once, one by another process when the boot would have ended.
func (p *Provider) WaitNode(ctx context.Context, externalID string) (providers.Instance, error) {
	n, err := p.wait(ctx, externalID)
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
	}
	i := providers.Instance{
		ExternalID: externalID, Cloud: cloud, Region: region, AZ: n.AZ, HostID: address,
		InterfaceIP: address, PublicIPv4: address, PrivateIPv4: address,
		HostKeys: []string{hostKey}, SkipHostScan: true,
	}
	if n.Address != "" {
		i.InterfaceIP, i.PublicIPv4, i.PrivateIPv4 = n.Address, n.Address, n.Address
		i.HostKeys, i.SkipHostScan = nil, false
	}
	return i, nil
}

// address is the first of the network that no machine has, or "" without a network. The
// network's first and last are left out.
func (p *Provider) address(s *state) (string, error) {
	network := p.fake.Network
	if !network.IsValid() {
		return "", nil
	}
	taken := map[string]bool{}
	for _, n := range s.nodes {
		taken[n.Address] = true
	}
	for a := network.Addr().Next(); network.Contains(a.Next()); a = a.Next() {
		if !taken[a.String()] {
			return a.String(), nil
		}
	}
	return "", fmt.Errorf("%w: all addresses of %s are taken", providers.ErrQuota, network)
}

func (p *Provider) wait(ctx context.Context, id string) (node, error) {
	if err := p.before(ctx, OpWait, id); err != nil {
		return node{}, err
	}
	n, gone, err := p.find(id)
	if err != nil {
		return node{}, err
	}
	if left := time.Until(n.Ready); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-gone:
		case <-ctx.Done():
			return node{}, context.Cause(ctx)
		}
		if n, _, err = p.find(id); err != nil {
			return node{}, err
		}
	}
	return n, p.after(ctx, OpWait, id)
}

// find looks a machine up, with a channel that closes when it goes.
func (p *Provider) find(id string) (n node, gone <-chan struct{}, err error) {
	found := false
	err = p.ledger.read(func(s *state) {
		if n, found = s.nodes[id]; found && time.Until(n.Ready) > 0 {
			gone = s.waitGone(id)
		}
	})
	if err == nil && !found {
		err = providers.ErrNotFound
	}
	return n, gone, err
}

// DeleteNode implements providers.Nodes.
func (p *Provider) DeleteNode(ctx context.Context, externalID string) error {
	if err := p.remove(ctx, externalID); err != nil {
		return fmt.Errorf("delete node %s: %w", externalID, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, id string) error {
	if err := p.before(ctx, OpDeleteNode, id); err != nil {
		return err
	}
	if err := pause(ctx, p.fake.DeleteDelay); err != nil {
		return err
	}
	err := p.ledger.change(func(s *state) (*event, error) {
		if _, ok := s.nodes[id]; !ok {
			return nil, nil
		}
		return &event{MachineGone: id}, nil
	})
	if err != nil {
		return err
	}
	return p.after(ctx, OpDeleteNode, id)
}

// Break makes a machine unusable, and records why, as a cloud that has stopped it.
func (p *Provider) Break(externalID, why string) error {
	return p.ledger.change(func(s *state) (*event, error) {
		n, ok := s.nodes[externalID]
		if !ok {
			return nil, providers.ErrNotFound
		}
		n.Down = why
		return &event{Node: &n}, nil
	})
}

// ListNodes implements providers.Nodes, sorted by external id.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	if err := p.before(ctx, OpList, ""); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var list []providers.NodeInfo
	err := p.ledger.read(func(s *state) {
		for _, n := range s.nodes {
			if n.Metadata[providers.MetaProvider] == p.cfg.Name {
				list = append(list, providers.NodeInfo{ExternalID: n.ID, Name: n.Name, Metadata: maps.Clone(n.Metadata), Down: n.Down})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	slices.SortFunc(list, func(a, b providers.NodeInfo) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list, nil
}

// ConsoleLog implements providers.Nodes: one line that names the machine.
func (p *Provider) ConsoleLog(ctx context.Context, externalID string, limit int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read console of node %s: %w", externalID, context.Cause(ctx))
	}
	n, _, err := p.find(externalID)
	if err != nil {
		return nil, fmt.Errorf("read console of node %s: %w", externalID, err)
	}
	text := []byte("fake console of " + n.Name + "\n")
	return text[max(0, len(text)-limit):], nil
}
