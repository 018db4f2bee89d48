package reaper

import (
	"context"
	"errors"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
)

// EvictTime is how long marking a node may take before another is tried.
const EvictTime = 2 * time.Second

// Evict marks an idle ready node for deletion, as a request needs its room.
func (r *Reaper) Evict(ctx context.Context, id string) error {
	lock, n, err := r.Store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = "a request needs its room"
		r.Log.Info("Idle node makes room", "node", id, "provider", n.Provider)
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, zkmodel.EpochOf(r.Now())); err == nil {
			err = r.Store.SaveNode(ctx, lock, n)
		}
		r.Step(step.Evicted)
	}
	return errors.Join(err, lock.Release(ctx))
}
