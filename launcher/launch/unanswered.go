package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// asking writes into a node when its machine is asked for.
func (l *Launches) asking(n *Run) func(context.Context) error {
	return func(ctx context.Context) error {
		was := n.Node.Asked
		n.Node.Asked = zkmodel.EpochOf(l.Now().Add(l.Ahead()))
		err := l.Save(ctx, n)
		if err != nil {
			n.Node.Asked = was // the cloud is not asked
		}
		return err
	}
}

// answered takes over what a call for a node's machine gave. Where ctx has ended nobody
// may have heard the answer.
func (l *Launches) answered(ctx context.Context, n *Run, err error) {
	if c := l.Clouds[n.Node.Provider]; c != nil && n.Node.Asked != 0 { // the cloud was asked, as far as it tells
		c.Heard(!errors.Is(err, providers.ErrUnanswered))
	}
	switch {
	case err != nil && ctx.Err() != nil:
	case !errors.Is(err, providers.ErrUnanswered):
		n.Node.Asked = 0
	case n.Node.Asked == 0:
		n.Node.Asked = zkmodel.EpochOf(l.Now().Add(l.Ahead()))
	}
}

// begun finds the machine that was asked for already, by us or by the launcher before
// us; "" when there is none and none can come any more.
func (l *Launches) begun(ctx context.Context, p supply.Machines, o *Order, n *Run) (string, error) {
	n.attempt.Next("search")
	moved, done := l.seek(o)
	defer done()
	ids, err := l.Finder.Search(ctx, p, n.Node, o.Pool.Provider.UnansweredCreateTimeout, moved, func(left time.Duration) error {
		o.Span.Log(l.Log).Warn("Creation got no answer; its machine is looked for before another is asked for",
			"request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "provider", n.Node.Provider, "asked", n.Node.Asked.Time(), "left", left.Round(time.Second))
		n.Node.Reason = fmt.Sprintf("%s of %s; until %s its machine may still be made", providers.ErrUnanswered,
			n.Node.Asked.Time().UTC().Format(time.TimeOnly), l.Now().Add(left).UTC().Format(time.TimeOnly))
		err := l.Save(ctx, n)
		l.Notify() // another provider may have room for its request
		return err
	})
	if err != nil {
		return "", err
	}
	n.Node.Asked, n.Node.Reason = 0, ""
	if len(ids) == 0 {
		return "", nil
	}
	n.Node.ExternalID = zkmodel.TextValue(ids[0])
	return ids[0], nil
}

// seek gives the channel that closes when another provider would take a request. One
// that is gone, as that of a node in launch for stock, nobody takes.
func (l *Launches) seek(o *Order) (moved <-chan struct{}, done func()) {
	if o.Gone {
		return nil, func() {}
	}
	return l.searches.Begin(o.Request.ID)
}

// MoveOn ends the searches of requests that another provider would take.
func (l *Launches) MoveOn(snap *schedule.Snapshot) {
	l.searches.End(func(id string) bool {
		i := slices.IndexFunc(snap.Requests, func(r *zkmodel.Request) bool { return r.ID == id })
		return i >= 0 && snap.Requests[i].Broken == nil && schedule.Elsewhere(snap, snap.Requests[i])
	})
}
