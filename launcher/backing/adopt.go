package backing

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// adopt makes records of the backing nodes that Nodepool's launcher has taken.
func (k *Keeper) adopt(ctx context.Context, s *seen) error {
	var failed error
	for _, n := range s.nodes {
		said, backs := n.Backs()
		if !backs || n.BacksFor() != k.Provider || n.State != zkmodel.NodeInUse || !n.Locked || said.Slots < 1 || said.Slots > zkmodel.MostSlots || said.Label == "" || s.named(n.ID) {
			continue
		}
		contender, err := k.Store.BackingLock(ctx, k.Provider, n.ID)
		if err != nil || contender == "" {
			failed = errors.Join(failed, err)
			continue
		}
		b := &zkmodel.Backing{
			Provider: k.Provider, Label: said.Label, Wants: k.Wants(said.Label), Node: n.ID,
			Launched: zkmodel.Epoch(said.Launched), Used: zkmodel.EpochOf(k.Now()), Slots: make([]zkmodel.BackingSlot, said.Slots),
		}
		if said.Failed {
			b.Failed = "it had failed before we took it over"
		}
		if err := k.create(ctx, b, s.version); err != nil {
			if outdated(err) {
				return failed // the change has us look again
			}
			failed = errors.Join(failed, err)
			continue
		}
		s.version++ // by what we have added
		k.Log.Info("Backing node of another launcher is taken over", "provider", k.Provider, "label", b.Label, "node", n.ID, "slots", len(b.Slots))
	}
	return failed
}

// left is a lock that seems to be left: with which contender, below which record, since when.
type left struct {
	contender string
	version   int32
	since     time.Time
}

// unlockLeft ends locks of the provider's on nodes that it does not have yet, or no more.
// Nodepool's launcher makes two writes of what is one transaction of ours: it locks a node and
// then has it in use, and has it used before it unlocks it. Killed in between it leaves a lock
// that no session ends. What becomes of the node then is its provider's.
//
// One that works, and whose pool is not registered as it ends or begins, is between the two for
// a moment, too: the lock has to be seen unchanged for as long as a session may outlive its
// process. The time is when to look again.
func (k *Keeper) unlockLeft(ctx context.Context, s *seen) (again time.Time, failed error) {
	before := k.left
	k.left = map[string]left{}
	for _, n := range s.nodes {
		if !k.leftLocked(n) || s.named(n.ID) {
			continue
		}
		contender, err := k.Store.BackingLock(ctx, k.Provider, n.ID)
		if err != nil || contender == "" {
			failed = errors.Join(failed, err)
			continue
		}
		now := left{contender, n.Stat.Version, k.Now()}
		if was := before[n.ID]; was.contender == now.contender && was.version == now.version {
			now.since = was.since
		}
		k.left[n.ID] = now
		if due := now.since.Add(k.Store.Session().Timeout()); due.After(k.Now()) {
			again = earlier(again, due)
			continue
		}
		err = k.Store.UnlockBacking(ctx, n, contender)
		switch {
		case outdated(err): // the change has us look again
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			k.Log.Warn("Node is unlocked that a launcher which ended had locked", "provider", k.Provider, "node", n.ID, "state", n.State)
		}
	}
	return again, failed
}

// leftLocked reports whether a node may be one that Nodepool's launcher left between two writes.
func (k *Keeper) leftLocked(n *zkmodel.Node) bool {
	if n.Broken != nil || !n.Locked {
		return false
	}
	switch n.State {
	case zkmodel.NodeReady:
		return n.Requestor == zkmodel.BackingOwner(k.Provider)
	case zkmodel.NodeUsed:
		return n.BacksFor() == k.Provider
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeTesting, zkmodel.NodeInUse, zkmodel.NodeHold,
		zkmodel.NodeFailed, zkmodel.NodeAborted, zkmodel.NodeDeleting, zkmodel.NodeDeleted:
	}
	return false
}

// named reports whether a record knows a node.
func (s *seen) named(node string) bool {
	return slices.ContainsFunc(s.records, func(b *zkmodel.Backing) bool { return b.Node == node })
}
