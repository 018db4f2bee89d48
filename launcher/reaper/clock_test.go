package reaper

import (
	"context"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
)

// look has a launcher look at nodes, whose clock says now and was measured to be late by lag. It tells how many
// nodes it locked.
func (r *room) look(now time.Time, lag time.Duration, nodes ...*zkmodel.Node) (locked int) {
	r.t.Helper()
	r.Now = func() time.Time { return now }
	r.steps = nil
	r.Due(context.WithoutCancel(r.t.Context()), &schedule.Snapshot{Now: now, Lag: lag, Nodes: nodes})
	r.Jobs.Wait()
	for _, at := range r.steps {
		if at == step.DeleteLocked {
			locked++
		}
	}
	return locked
}

// Mistake: a launcher whose clock is early sees that a node is too old, looks again and sees that it is not, so many
// times a second, each with a lock; or it takes a held node from a person before its time.
func TestEarlyClockMakesNothingOlder(t *testing.T) {
	t.Parallel()
	r := newRoom(t, func(d *Deps) {
		d.Config = &configs.Config{Labels: []configs.Label{{Name: "small", MaxReadyAge: time.Hour}}}
	})
	idle := r.node(zkmodel.NodeReady, external("a"))
	held := r.node(zkmodel.NodeHold, external("b"), func(n *zkmodel.Node) { n.HoldExpiration = 3600 })
	soon, over := time.Now().Add(time.Hour-15*time.Second), time.Now().Add(time.Hour+15*time.Second)
	const early = 30 * time.Second
	if n := r.look(soon.Add(early), -early, idle, held); n != 0 {
		t.Errorf("%d nodes are locked a quarter of a minute before their time", n)
	}
	r.is(idle, zkmodel.NodeReady)
	r.is(held, zkmodel.NodeHold)
	if n := r.look(over.Add(10*time.Minute), -10*time.Minute, idle, held); n != 0 {
		t.Errorf("%d nodes are locked by a host whose clock is wrong by minutes", n)
	}
	r.is(held, zkmodel.NodeHold)
	if n := r.look(over.Add(early), -early, idle, held); n != 2 {
		t.Errorf("%d nodes are locked when their time is over, want 2", n)
	}
	r.is(idle, "")
	r.is(held, "")
}

// Mistake: a node that the launcher's view still shows as it was is locked in vain at each look. Of two nodes one is so.
func TestWhatIsNotDueRestsForAMoment(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	kept, free := r.node(zkmodel.NodeReady, allocated(r.request(zkmodel.RequestFulfilled))), r.node(zkmodel.NodeReady, allocated("200-0000000009"))
	if n := r.look(time.Now(), 0, kept, free); n != 2 { // neither request is in the view
		t.Fatalf("%d nodes are locked, want 2", n)
	}
	if n := r.look(time.Now(), 0, kept); n != 0 {
		t.Errorf("%d nodes are locked by another look at once", n)
	}
	kept, free = r.is(kept, zkmodel.NodeReady), r.is(free, zkmodel.NodeReady)
	if kept.AllocatedTo == "" || free.AllocatedTo != "" {
		t.Error("not the one whose request is gone is free")
	}
	if r.Jobs.Left(inflight.Node(kept.ID)).IsZero() || !r.Jobs.Left(inflight.Node(free.ID)).IsZero() {
		t.Error("not the one of which nothing was due is left alone")
	}
	r.MakeRoom(t.Context(), []string{kept.ID}, time.Now())()
	snap := &schedule.Snapshot{Now: time.Now(), Nodes: []*zkmodel.Node{kept, free}, Evicted: map[string]bool{}}
	if r.Leaving(snap); len(snap.Evicted) > 0 {
		t.Errorf("nobody has told it to make room, and it counts as leaving: %v", snap.Evicted)
	}
}
