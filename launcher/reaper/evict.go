package reaper

import (
	"context"
	"errors"
	"sync"
	"time"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
)

// evictTime is how long marking a node may take before another is tried.
const evictTime = 2 * time.Second

// MakeRoom begins to mark idle ready nodes for deletion, in jobs, as requests need their
// room. It returns what waits until it is done for all, well or not.
func (r *Reaper) MakeRoom(ctx context.Context, ids []string, now time.Time) (marked func()) {
	var marking sync.WaitGroup
	for _, id := range ids {
		marking.Add(1)
		if !r.Jobs.Start(inflight.Node(id), func() error { defer marking.Done(); return r.evict(ctx, id) }) {
			marking.Done() // it rests, or is in hand: nobody is told
			continue
		}
		r.told[id] = now
	}
	return marking.Wait
}

// Leaving notes in a snapshot which idle nodes were told to make room: until the snapshot
// shows it, or it did not work in time. The time is when to look again.
func (r *Reaper) Leaving(snap *schedule.Snapshot) (again time.Time) {
	ready := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.State == zkmodel.NodeReady {
			ready[n.ID] = true
		}
	}
	for id, told := range r.told {
		if over := told.Add(evictTime); ready[id] && over.After(snap.Now) {
			snap.Evicted[id], again = true, schedule.Earlier(again, over)
		} else {
			delete(r.told, id)
		}
	}
	return again
}

// evict marks an idle ready node for deletion, as a request needs its room.
func (r *Reaper) evict(ctx context.Context, id string) error {
	lock, n, err := r.Store.LockNode(ctx, id, "")
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if n.State == zkmodel.NodeReady && n.AllocatedTo == "" {
		n.Reason = schedule.EvictedReason
		r.Log.Info("Idle node makes room", "node", id, "provider", n.Provider)
		if err = zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, zkmodel.EpochOf(r.Now())); err == nil {
			err = r.Store.SaveNode(ctx, lock, n)
		}
		r.Step(step.Evicted)
	}
	return errors.Join(err, lock.Release(ctx))
}
