package backing

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// unheardFor is for how long nobody need have begun to launch a backing node that is asked for
// until idle nodes make room for those who wait for it.
const unheardFor = 5 * time.Second

// makeRoom marks idle nodes for deletion, one of a label after the other, whose slots others wait
// for, as no further backing node can be had. The time is when to look again.
func (k *Keeper) makeRoom(ctx context.Context, s *seen) (again time.Time, failed error) {
	for label, since := range s.unheard() {
		if k.Frozen(label) != "" {
			continue
		}
		if due := since.Add(unheardFor); due.After(k.Now()) {
			again = earlier(again, due)
			continue
		}
		if idle := k.idle(s, label); idle != "" {
			failed = errors.Join(failed, k.evict(ctx, idle))
		}
	}
	return again, failed
}

// unheard are the labels for whose nodes backing nodes are asked for that nobody has begun to
// launch, and since when; but for nodes that launchers keep in stock, which take no other's place.
func (s *seen) unheard() map[string]time.Time {
	labels := map[string]time.Time{}
	for _, b := range s.records {
		r := s.requests[b.ID]
		if b.Node != "" || b.Failed != "" || r == nil || r.State != zkmodel.RequestRequested {
			continue
		}
		if slices.ContainsFunc(b.Slots, func(slot zkmodel.BackingSlot) bool {
			request, over := s.launchedFor(slot.Node)
			return request != "" && !over && s.nodes[slot.Node].Requestor != zkmodel.MinReadyRequestor
		}) {
			labels[b.Label] = earlier(labels[b.Label], r.StateTime.Time())
		}
	}
	return labels
}

// idle is the node of a label that has been ready and nobody's for longest; "" when there is none,
// or when one goes already.
func (k *Keeper) idle(s *seen, label string) string {
	var oldest *zkmodel.Node
	for _, n := range s.nodes {
		if _, slot := n.OnSlot(); n.Provider != k.Provider || n.Broken != nil || !slot || !slices.Contains(n.Type, label) {
			continue
		}
		switch n.State {
		case zkmodel.NodeUsed, zkmodel.NodeDeleting, zkmodel.NodeAborted, zkmodel.NodeFailed:
			return ""
		case zkmodel.NodeReady:
			if n.AllocatedTo == "" && !n.Locked && (oldest == nil || n.StateTime < oldest.StateTime) {
				oldest = n
			}
		case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeTesting, zkmodel.NodeInUse, zkmodel.NodeHold, zkmodel.NodeDeleted:
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.ID
}

// evict marks an idle node for deletion.
func (k *Keeper) evict(ctx context.Context, id string) error {
	lock, n, err := k.Store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrLocked) {
		return nil // the change has us look again
	}
	if err != nil {
		return err
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = "a request waits for its slot"
		k.Log.Info("Idle node makes room", "node", id, "provider", n.Provider)
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, zkmodel.EpochOf(k.Now())); err == nil {
			err = k.Store.SaveNode(ctx, lock, n)
		}
		k.Step(step.Evicted)
	}
	return errors.Join(err, lock.Release(ctx))
}
