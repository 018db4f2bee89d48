package backing

import (
	"context"
	"errors"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// leadsBack is the way from the label that a record wants over those whose nodes it is asked for
// to that label again; nil when it does not lead there. One file of a configuration with such a
// way is refused; of several files that launchers have each sees a part alone.
func (k *Keeper) leadsBack(ctx context.Context, s *seen, b *zkmodel.Backing) (way []string, err error) {
	type place struct {
		*zkmodel.Backing

		way []string
	}
	requests := map[string]*zkmodel.Request{}
	for _, r := range k.Tree.Requests() {
		requests[r.ID] = r
	}
	been := map[string]bool{}
	for queue := []place{{b, []string{b.Wants, b.Label}}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if been[at.Path()] {
			continue
		}
		been[at.Path()] = true
		if at.Label == b.Wants {
			slices.Reverse(at.way)
			return at.way, nil
		}
		for _, slot := range at.Slots {
			above, err := k.wantedFor(ctx, s.nodes[slot.Node], requests)
			if err != nil {
				return nil, err
			}
			if above != nil {
				queue = append(queue, place{above, append(slices.Clone(at.way), above.Label)})
			}
		}
	}
	return nil, nil
}

// wantedFor is the record for which a node is launched, of whatever provider; nil for a node that
// is not to be a backing node, or that Nodepool's launcher has asked for: what for, it alone knows.
func (k *Keeper) wantedFor(ctx context.Context, n *zkmodel.Node, requests map[string]*zkmodel.Request) (*zkmodel.Backing, error) {
	if n == nil || n.Broken != nil || requests[n.AllocatedTo] == nil {
		return nil, nil //nolint:nilnil,nilerr // there is none
	}
	r := requests[n.AllocatedTo]
	provider := zkmodel.BackingRequestor(r)
	if provider == "" {
		return nil, nil //nolint:nilnil // the same
	}
	b, err := k.Store.Backing(ctx, provider, zkmodel.BackingOf(r))
	if errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, zkmodel.ErrUndecodable) || errors.Is(err, recipe.ErrBadPath) || recipe.Unreadable(err) {
		return nil, nil //nolint:nilnil // the same: what others write of their requests holds up nobody
	}
	return b, err
}
