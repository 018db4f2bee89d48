package metastatic

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// CreateNode implements providers.Nodes: it takes a free slot, else one of a backing node that
// is asked for.
func (p *Provider) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	label, err := p.label(spec.Pool, spec.Label)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	id := ""
	err = p.change(ctx, "create node "+spec.NodeID, func(list []providers.BackingNode, revision any) []*providers.BackingNode {
		if id = had(list, spec); id != "" {
			return nil
		}
		n := p.choose(ctx, list, spec.Label, spec.NodeID)
		if n == nil {
			n = p.another(ctx, spec.Label, label, revision)
		}
		id = free(list, spec)
		n.Slots[firstFree(n)] = providers.SlotUse{ExternalID: id, Node: spec.NodeID, Name: spec.Hostname, Metadata: spec.Metadata}
		return []*providers.BackingNode{n}
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// change lists the backing nodes and saves those that do has changed; again where another was
// quicker.
func (p *Provider) change(ctx context.Context, what string, do func(list []providers.BackingNode, revision any) []*providers.BackingNode) error {
	known, err := p.backing(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	for {
		list, revision, err := known.List(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		var changed []providers.BackingNode
		for _, n := range do(list, revision) {
			changed = append(changed, *n)
		}
		if len(changed) == 0 {
			return nil
		}
		if err = known.Save(ctx, changed...); !errors.Is(err, providers.ErrChanged) {
			return wrapped(what, err)
		}
	}
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// had is the slot that a node has already, "" when it has none.
func had(list []providers.BackingNode, spec providers.NodeSpec) string {
	for _, n := range list {
		for _, use := range n.Slots {
			if use.Node == spec.NodeID && providers.SameLaunch(use.Metadata, spec.Metadata) {
				return use.ExternalID
			}
		}
	}
	return ""
}

// free is what a node is called here: its number, as with Nodepool, which finds slots by it.
// The number may come again while a launch of earlier has its slot yet.
func free(list []providers.BackingNode, spec providers.NodeSpec) string {
	if _, _, taken := find(list, spec.NodeID); !taken {
		return spec.NodeID
	}
	return spec.NodeID + "." + spec.Metadata[providers.MetaLaunch]
}

// find finds a slot that is used.
func find(list []providers.BackingNode, externalID string) (n *providers.BackingNode, slot int, found bool) {
	for i := range list {
		for slot, use := range list[i].Slots {
			if use.ExternalID == externalID && !use.Free() {
				return &list[i], slot, true
			}
		}
	}
	return nil, 0, false
}

// choose finds a backing node with a free slot for a node: one that is there before one that is
// asked for, and the fullest, so that others become empty; nil when there is none. Slots that are
// there are left to those who have waited for longer.
func (p *Provider) choose(ctx context.Context, list []providers.BackingNode, label, node string) *providers.BackingNode {
	left := p.room(ctx, list, label) > ahead(list, label, node)
	var best *providers.BackingNode
	for i := range list {
		n := &list[i]
		if n.Label != label || !p.takes(ctx, n) || n.Node != "" && !left {
			continue
		}
		if best == nil || better(n, best) {
			best = n
		}
	}
	return best
}

// takes reports whether a backing node takes a new node.
func (p *Provider) takes(ctx context.Context, n *providers.BackingNode) bool {
	if n.Failed != "" || n.Leaving != "" || firstFree(n) < 0 {
		return false
	}
	most := p.labels[n.Label].MaxAge
	return most == 0 || clock.Now(ctx).Before(n.Launched.Add(most))
}

func better(n, than *providers.BackingNode) bool {
	if there := n.Node != ""; there != (than.Node != "") {
		return there
	}
	if a, b := used(n), used(than); a != b {
		return a > b
	}
	if !n.Launched.Equal(than.Launched) {
		return n.Launched.Before(than.Launched)
	}
	return n.ID < than.ID
}

func used(n *providers.BackingNode) int {
	count := 0
	for _, use := range n.Slots {
		if !use.Free() {
			count++
		}
	}
	return count
}

// firstFree is the first slot that nobody uses, or -1.
func firstFree(n *providers.BackingNode) int {
	for slot, use := range n.Slots {
		if use.Free() {
			return slot
		}
	}
	return -1
}

// another is a backing node to be asked for, as none of a list will do.
func (p *Provider) another(ctx context.Context, label string, settings configs.MetastaticLabel, revision any) *providers.BackingNode {
	now := clock.Now(ctx)
	return &providers.BackingNode{
		Revision: revision, Label: label, Wants: settings.BackingLabel, Slots: make([]providers.SlotUse, settings.MaxParallelJobs),
		Launched: now, Used: now,
	}
}

// instance is a slot of a backing node that is there.
func instance(n *providers.BackingNode, slot int) providers.Instance {
	i := n.Like
	i.ExternalID = n.Slots[slot].ExternalID
	on := providers.OnSlot{}
	if i.Slot != nil {
		on = *i.Slot
	}
	on.Backing, on.Number, on.Metadata = n.Node, slot, n.Slots[slot].Metadata
	i.Slot = &on
	return i
}

// DeleteNode implements providers.Nodes: its slot becomes free.
func (p *Provider) DeleteNode(ctx context.Context, externalID string) error {
	return p.change(ctx, "delete node "+externalID, func(list []providers.BackingNode, _ any) []*providers.BackingNode {
		n, slot, found := find(list, externalID)
		if !found {
			return nil
		}
		if !n.Slots[slot].Recorded { // else its record is all that has the slot
			n.Slots[slot] = providers.SlotUse{}
		}
		n.Used = clock.Now(ctx)
		return []*providers.BackingNode{n}
	})
}

// ListNodes implements providers.Nodes.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	known, err := p.backing(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes of %s: %w", p.cfg.Name, err)
	}
	list, _, err := known.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes of %s: %w", p.cfg.Name, err)
	}
	var nodes []providers.NodeInfo
	for _, n := range list {
		for _, use := range n.Slots {
			if use.ExternalID != "" {
				nodes = append(nodes, providers.NodeInfo{ExternalID: use.ExternalID, Name: use.Name, Metadata: use.Metadata})
			}
		}
	}
	return nodes, nil
}

// Unreachable implements providers.Backed.
func (p *Provider) Unreachable(ctx context.Context, externalID string, why error) error {
	return p.change(ctx, "note that node "+externalID+" cannot be reached", func(list []providers.BackingNode, _ any) []*providers.BackingNode {
		n, _, found := find(list, externalID)
		if !found || n.Failed != "" {
			return nil
		}
		n.Failed = "it could not be reached: " + why.Error()
		return []*providers.BackingNode{n}
	})
}
