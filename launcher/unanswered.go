package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// A cloud that was asked for a machine and did not answer may make it minutes later. So
// the time of asking is in the node's record before the cloud is asked, and until the
// answer is known, or the cloud's time for it is over, the node keeps its place and its
// machine is looked for. No other is asked for under that node meanwhile, nor for its
// request in the same provider, by nobody; other providers may take the request at once.

// parted tells whether a request goes on without a node, whose machine may yet be made.
func parted(n *zkmodel.Node) bool { return n.Unanswered() && !reap.InLaunch(n) }

// asking writes into a node when its machine is asked for.
func (s *session) asking(n *nodeRun) func(context.Context) error {
	return func(ctx context.Context) error {
		n.node.Asked = zkmodel.EpochOf(s.now().Add(s.ahead()))
		return s.save(ctx, n)
	}
}

// answered takes over what a call for a node's machine gave. Where ctx has ended nobody
// may have heard the answer.
func (s *session) answered(ctx context.Context, n *nodeRun, err error) {
	if c := s.clouds[n.node.Provider]; n.node.Asked != 0 { // the cloud was asked, as far as it tells
		c.Heard(!errors.Is(err, providers.ErrUnanswered))
	}
	switch {
	case err != nil && ctx.Err() != nil:
	case !errors.Is(err, providers.ErrUnanswered):
		n.node.Asked = 0
	case n.node.Asked == 0:
		n.node.Asked = zkmodel.EpochOf(s.now().Add(s.ahead()))
	}
}

// begun finds the machine that was asked for already, by us or by the launcher before
// us; "" when there is none and none can come any more.
func (s *session) begun(ctx context.Context, p supply.Machines, h *requestRun, n *nodeRun) (string, error) {
	moved, done := s.seek(h)
	defer done()
	ids, err := s.finder.Search(ctx, p, n.node, h.pool.Provider.UnansweredCreateTimeout, moved, func(left time.Duration) error {
		s.log.Warn("Creation got no answer; its machine is looked for before another is asked for",
			"node", n.node.ID, "provider", n.node.Provider, "asked", n.node.Asked.Time(), "left", left.Round(time.Second))
		n.node.Reason = fmt.Sprintf("%s of %s; until %s its machine may still be made", providers.ErrUnanswered,
			n.node.Asked.Time().UTC().Format(time.TimeOnly), s.now().Add(left).UTC().Format(time.TimeOnly))
		err := s.save(ctx, n)
		s.notify() // another provider may have room for its request
		return err
	})
	if err != nil {
		return "", err
	}
	n.node.Asked, n.node.Reason = 0, ""
	if len(ids) == 0 {
		return "", nil
	}
	n.node.ExternalID = zkmodel.TextValue(ids[0])
	return ids[0], nil
}

// seek gives the channel that closes when another provider would take a request. One
// that is gone, as that of a node in launch for stock, nobody takes.
func (s *session) seek(h *requestRun) (moved <-chan struct{}, done func()) {
	if h.lock == nil {
		return nil, func() {}
	}
	return s.searches.Begin(h.request.ID)
}

// moveOn ends the searches of requests that another provider would take.
func (s *session) moveOn(snap *schedule.Snapshot) {
	s.searches.End(func(id string) bool {
		i := slices.IndexFunc(snap.Requests, func(r *zkmodel.Request) bool { return r.ID == id })
		return i >= 0 && snap.Requests[i].Broken == nil && schedule.Elsewhere(snap, snap.Requests[i])
	})
}
