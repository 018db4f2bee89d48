package launcher

import (
	"context"
	"errors"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
)

// evictTime is how long marking a node may take before another is tried.
const evictTime = 2 * time.Second

// evict marks an idle ready node for deletion, as a request needs its room.
func (s *session) evict(ctx context.Context, id string) error {
	lock, n, err := s.store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = "a request needs its room"
		s.log.Info("Idle node makes room", "node", id, "provider", n.Provider)
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, s.epoch()); err == nil {
			err = s.store.SaveNode(ctx, lock, n)
		}
		s.step(step.Evicted)
	}
	return errors.Join(err, lock.Release(ctx))
}
