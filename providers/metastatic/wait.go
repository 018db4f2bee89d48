package metastatic

import (
	"context"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

const (
	// unheardFor is for how long a request that has slots, and waits for others, keeps those that
	// an older one waits for, while nobody has begun to launch a backing node.
	unheardFor = 5 * time.Second
	// launchedFor is the same while a launcher launches one, or Nodepool's launcher waits for room
	// for it.
	launchedFor = 5 * time.Minute
	// relook is after how long a node that waits looks again although nothing has changed, should it
	// have missed something.
	relook = time.Minute
)

// WaitNode implements providers.Nodes: it waits for the backing node, or for a slot of another
// that becomes free earlier.
func (p *Provider) WaitNode(ctx context.Context, externalID string) (providers.Instance, error) {
	known, err := p.backing(ctx)
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
	}
	changed, stop := known.Watch()
	defer stop()
	var contested time.Time // since when an older request waits for slots that ours has
	for {
		list, _, err := known.List(ctx)
		if err != nil {
			return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
		}
		n, slot, found := find(list, externalID)
		switch {
		case !found:
			return providers.Instance{}, fmt.Errorf("wait for node %s: %w: it has no slot", externalID, providers.ErrNotFound)
		case n.Failed != "":
			return providers.Instance{}, fmt.Errorf("wait for node %s: %w: %s", externalID, providers.ErrNodeFailed, n.Failed)
		case n.Node != "":
			return instance(n, slot), nil
		case p.moves(ctx, list, n, slot) != nil:
			if err := p.move(ctx, externalID); err != nil {
				return providers.Instance{}, err
			}
			continue
		}
		if err := yields(ctx, list, n, n.Slots[slot], &contested); err != nil {
			return providers.Instance{}, fmt.Errorf("wait for a node of label %s below node %s: %w", n.Wants, externalID, err)
		}
		if err := await(ctx, changed, !contested.IsZero()); err != nil {
			return providers.Instance{}, fmt.Errorf("wait for a node of label %s below node %s: %w", n.Wants, externalID, err)
		}
	}
}

// await returns when something has changed, or after a while, soon where what is to be seen need
// not be told of.
func await(ctx context.Context, changed <-chan struct{}, soon bool) error {
	pause := relook
	if soon {
		pause = unheardFor
	}
	timer := clock.NewTimer(ctx, pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ahead is how many nodes that are launched wait for backing nodes of a label and are older than
// one: slots that become free are theirs.
func ahead(list []providers.BackingNode, label, node string) int {
	count := 0
	for i := range list {
		if list[i].Label != label || !waits(&list[i]) {
			continue
		}
		for _, use := range list[i].Slots {
			if use.For != "" && !use.Over && use.Node < node {
				count++
			}
		}
	}
	return count
}

// waits reports whether what uses the slots of a backing node waits for it.
func waits(n *providers.BackingNode) bool { return n.Node == "" && n.Failed == "" }

// room is how many slots of a label are there and free.
func (p *Provider) room(ctx context.Context, list []providers.BackingNode, label string) int {
	room := 0
	for i := range list {
		if n := &list[i]; n.Label == label && n.Node != "" && p.takes(ctx, n) {
			room += len(n.Slots) - used(n)
		}
	}
	return room
}

// moves finds a backing node that is there, and has a slot for a node that waits for another; nil
// when there is none.
func (p *Provider) moves(ctx context.Context, list []providers.BackingNode, from *providers.BackingNode, slot int) *providers.BackingNode {
	to := p.choose(ctx, list, from.Label, from.Slots[slot].Node)
	if to == nil || to.Node == "" {
		return nil
	}
	return to
}

// move gives a node that waits a slot that is there. Killed before or after, its launch goes on.
func (p *Provider) move(ctx context.Context, externalID string) error {
	return p.change(ctx, "move node "+externalID, func(list []providers.BackingNode, _ any) []*providers.BackingNode {
		from, slot, found := find(list, externalID)
		if !found || !waits(from) {
			return nil
		}
		to := p.moves(ctx, list, from, slot)
		if to == nil {
			return nil
		}
		to.Slots[firstFree(to)], from.Slots[slot] = from.Slots[slot], providers.SlotUse{}
		from.Used = clock.Now(ctx)
		return []*providers.BackingNode{to, from}
	})
}

// yields ends the wait of a node, with its request's, once an older request has waited for long
// enough for slots that this one has: else each could have what the other waits for, for ever.
//
// Errors: providers.ErrGivesWay.
func yields(ctx context.Context, list []providers.BackingNode, n *providers.BackingNode, use providers.SlotUse, contested *time.Time) error {
	if use.For == "" {
		return nil
	}
	all := demands(list)
	mine := all[use.For]
	if mine.over {
		return fmt.Errorf("%w: another node of request %s has", providers.ErrGivesWay, use.For)
	}
	older := all.older(use.For)
	if older == "" {
		*contested = time.Time{}
		return nil
	}
	now := clock.Now(ctx)
	if contested.IsZero() {
		*contested = now
	}
	patience := launchedFor
	if n.Unheard {
		patience = unheardFor
	}
	if now.Sub(*contested) < patience {
		return nil
	}
	return fmt.Errorf("%w: request %s, which is older, waits for slots that request %s has", providers.ErrGivesWay, older, use.For)
}

// demand is what a request has and waits for: labels.
type demand struct {
	has, waits map[string]bool
	over       bool // one of its launches has ended in vain
}

type demandsOf map[string]demand // by request

func demands(list []providers.BackingNode) demandsOf {
	all := demandsOf{}
	for i := range list {
		n := &list[i]
		for _, use := range n.Slots {
			if use.For == "" {
				continue
			}
			d, known := all[use.For]
			if !known {
				d = demand{has: map[string]bool{}, waits: map[string]bool{}}
			}
			switch {
			case use.Over:
				d.over = true
			case n.Node != "":
				d.has[n.Label] = true
			case waits(n):
				d.waits[n.Label] = true
			}
			all[use.For] = d
		}
	}
	return all
}

// older is a request before one that waits for what it has, while each has something and waits for
// something; "" when there is none.
func (all demandsOf) older(than string) string {
	mine, first := all[than], ""
	if len(mine.has) == 0 || len(mine.waits) == 0 {
		return ""
	}
	for id, other := range all {
		if id >= than || len(other.has) == 0 || first != "" && first < id {
			continue
		}
		for label := range other.waits {
			if mine.has[label] {
				first = id
			}
		}
	}
	return first
}
