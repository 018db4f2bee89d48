package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// lookTime is how long one look for a missing machine may take.
const lookTime = 30 * time.Second

// doubt is why a node's machine cannot be used, as far as is known; the zero value if it can.
func (r *Reaper) doubt(n *zkmodel.Node) schedule.Doubt {
	c, ours := r.Clouds[n.Provider]
	if !ours || n.ExternalID.IsNull() {
		return schedule.Doubt{}
	}
	return c.Doubts()[n.ExternalID.Text()]
}

// idleInterrupted are the ready nodes that are nobody's and whose machines cannot be used, with why.
func (r *Reaper) idleInterrupted(nodes []*zkmodel.Node) map[string]string {
	all := map[string]map[string]schedule.Doubt{}
	for name, c := range r.Clouds {
		if doubts := c.Doubts(); len(doubts) > 0 {
			all[name] = doubts
		}
	}
	if len(all) == 0 {
		return nil
	}
	found := map[string]string{}
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.ExternalID.IsNull() {
			if d := all[n.Provider][n.ExternalID.Text()]; d.Why != "" {
				found[n.ID] = d.Why
			}
		}
	}
	return found
}

// Interrupted notes in a snapshot the idle nodes whose machines cannot be used: nobody is given
// one, and Due takes them away.
func (r *Reaper) Interrupted(snap *schedule.Snapshot) {
	for id := range r.idleInterrupted(snap.Nodes) {
		snap.Evicted[id] = true
	}
}

// lookAgain asks for the machine of an idle node, which a complete list lacked, until the cloud
// answers: the node's lock keeps it from requests meanwhile. It returns nil if the cloud has no such
// machine, and inflight.ErrOutdated if it has one.
func (r *Reaper) lookAgain(ctx context.Context, n *zkmodel.Node) error {
	c, id := r.Clouds[n.Provider], n.ExternalID.Text()
	p, err := c.Use()
	if err != nil {
		return err
	}
	ctx, cancel := clock.WithTimeoutCause(ctx, deleteTime, fmt.Errorf("the cloud did not answer within %s", deleteTime))
	defer cancel()
	pauses := kit.Backoff{First: inflight.FirstPause, Longest: lookTime}
	for try := 1; r.doubt(n).Missing; try++ {
		short, done := clock.WithTimeout(ctx, lookTime)
		_, err := p.WaitNode(short, id)
		done()
		switch {
		case errors.Is(err, providers.ErrNotFound):
			return nil
		case err == nil, errors.Is(err, providers.ErrNodeFailed), errors.Is(err, providers.ErrQuota):
			c.Found(id)
		case clock.Sleep(ctx, pauses.After(try)) != nil:
			return fmt.Errorf("look for machine %s of node %s: %w", id, n.ID, errors.Join(context.Cause(ctx), err))
		}
	}
	return inflight.ErrOutdated
}
