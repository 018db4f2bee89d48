package backing

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// gather is how long changes are gathered before another look.
	gather = 50 * time.Millisecond
	// busyPause is how long after a backing node was locked by another it is looked at again.
	busyPause = 250 * time.Millisecond
	// urgency is that of requests for backing nodes; Nodepool's word.
	urgency = "100"
)

// Keeper asks for the backing nodes of a provider, takes them over and gives them back. One
// launcher does, for all.
type Keeper struct {
	*Known

	// Backed is the provider.
	Backed providers.Backed
	// Wants is the label that backing nodes of a label are asked for by; "" is unknown.
	Wants func(label string) string
	// Frozen says why a label is left out of the configuration, so that nothing follows from what that says of
	// it, or does not say; "" when it is not.
	Frozen func(label string) string
	// Rival says who else has the backing nodes for himself as long as he is there: Nodepool's
	// launcher; "" is nobody.
	Rival func() string
	Now   func() time.Time
	Log   hclog.Logger

	told string          // of records that nobody can decode
	left map[string]left // locks that seem to be left, at the last look, by node
}

// Changes tell that something has changed.
type Changes interface {
	C() <-chan struct{}
	Take() []string
}

// Run works until ctx ends, whenever something has changed.
func (k *Keeper) Run(ctx context.Context, changes ...Changes) error {
	records, stop := k.Watch()
	defer stop()
	retry := kit.Backoff{First: time.Second, Longest: time.Minute}
	failures := 0
	for {
		for _, c := range changes {
			c.Take()
		}
		again, err := k.pass(ctx)
		if ctx.Err() != nil {
			return nil
		}
		pause := gather
		if err != nil {
			failures++
			pause = retry.After(failures)
			k.Log.Warn("Cannot look after backing nodes", "provider", k.Provider, "error", err, "retry", pause)
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil
		}
		if err != nil {
			continue
		}
		failures = 0
		if !k.await(ctx, again, append([]<-chan struct{}{records}, channels(changes)...)) {
			return nil
		}
	}
}

// await returns when something has changed or the time again has come, zero for none; false
// when ctx has ended.
func (k *Keeper) await(ctx context.Context, again time.Time, changes []<-chan struct{}) bool {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, c := range changes {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	if !again.IsZero() {
		timer := clock.NewTimer(ctx, max(again.Sub(k.Now()), 0))
		defer timer.Stop()
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)})
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen != 0
}

func channels(changes []Changes) (list []<-chan struct{}) {
	for _, c := range changes {
		list = append(list, c.C())
	}
	return list
}

// pass looks at all of them once, and tells when to look again although nothing changes.
func (k *Keeper) pass(ctx context.Context) (again time.Time, err error) {
	s, err := k.look(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if k.Rival() != "" {
		k.left = nil // it may be what holds them
		return time.Time{}, nil
	}
	if k.tellBroken(s.broken); s.broken == nil { // else the node of a broken record would seem to have none
		adopted := k.adopt(ctx, s)
		again, err = k.unlockLeft(ctx, s)
		err = errors.Join(adopted, err)
	}
	known := map[string]bool{}
	for _, b := range s.records {
		known[b.ID] = true
		due, failed := k.step(ctx, s, b)
		again = earlier(again, due)
		if failed != nil && !outdated(failed) { // else the change has us look again
			err = errors.Join(err, failed)
		}
	}
	due, failed := k.makeRoom(ctx, s)
	return earlier(again, due), errors.Join(err, failed, k.dropSurplus(ctx, s, known))
}

// dropSurplus deletes requests that are made for nothing: others were made, or what they were
// for is gone.
func (k *Keeper) dropSurplus(ctx context.Context, s *seen, known map[string]bool) (failed error) {
	for id, r := range s.requests {
		if !known[id] && s.broken == nil { // else it may be a broken record's
			s.surplus = append(s.surplus, r)
		}
	}
	for _, r := range s.surplus {
		failed = errors.Join(failed, k.Store.DeleteRequest(ctx, r.ID))
	}
	return failed
}

// earlier is the earlier of two times; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tellBroken tells once of records that nobody can decode. It is no failure of ours: the rest is
// looked after as ever, and who mends one changes it.
func (k *Keeper) tellBroken(broken error) {
	text := ""
	if broken != nil {
		text = broken.Error()
	}
	if text != "" && text != k.told {
		k.Log.Warn("Cannot look after backing nodes", "provider", k.Provider, "error", broken)
	}
	k.told = text
}

// step does what is next with one of them.
func (k *Keeper) step(ctx context.Context, s *seen, b *zkmodel.Backing) (again time.Time, err error) {
	if b.Node == "" {
		return k.ask(ctx, s, b)
	}
	return k.keep(ctx, s, b)
}

// ask sees to one that has no node yet.
func (k *Keeper) ask(ctx context.Context, s *seen, b *zkmodel.Backing) (again time.Time, err error) {
	r := s.requests[b.ID]
	switch {
	case b.Failed == "" && r != nil && r.State == zkmodel.RequestFulfilled: // also when nobody wants it any more: it is given back then
		return k.take(ctx, b, r)
	case b.Failed != "" || b.Idle():
		if r != nil && r.State == zkmodel.RequestPending && b.Failed == "" {
			return time.Time{}, nil // its launch is under way, and somebody may want it yet
		}
		if r != nil {
			return time.Time{}, k.Store.DeleteRequest(ctx, r.ID)
		}
		if b.Idle() {
			return time.Time{}, k.Store.DropBacking(ctx, b, "")
		}
		return time.Time{}, nil // until who waits for it has given it up
	case r == nil:
		return time.Time{}, k.request(ctx, s, b)
	case r.State == zkmodel.RequestFailed:
		b.Failed = fmt.Sprintf("request %s for a node of label %s failed", r.ID, b.Wants)
		if r.Reason != "" {
			b.Failed += ": " + r.Reason
		}
		k.Log.Warn("No backing node", "provider", k.Provider, "label", b.Label, "backing_label", b.Wants, "request", r.ID, "error", b.Failed)
		return time.Time{}, k.Store.SaveBacking(ctx, b) // the request goes when it is known
	}
	return time.Time{}, nil
}

// request asks for a node. The request outlives us, as those of Zuul do: what boots for it is
// not lost with a launcher.
func (k *Keeper) request(ctx context.Context, s *seen, b *zkmodel.Backing) error {
	switch way, err := k.leadsBack(ctx, s, b); {
	case err != nil:
		return err
	case way != nil:
		b.Failed = fmt.Sprintf("the backing-label %s leads back to itself, over configurations of several launchers (%s): each node would ask for another",
			b.Wants, strings.Join(way, ", "))
		k.Log.Warn("No backing node", "provider", k.Provider, "label", b.Label, "backing_label", b.Wants, "error", b.Failed)
		return k.Store.SaveBacking(ctx, b)
	}
	r := &zkmodel.Request{
		NodeTypes: zkmodel.Strings{b.Wants}, Requestor: zkmodel.BackingOwner(k.Provider), Reuse: true,
		RequestorData: zkmodel.BackingMarkOf(b.ID),
	}
	if err := k.Store.CreateRequest(ctx, urgency, r); err != nil {
		return err
	}
	k.Step(step.BackingAsked)
	k.Log.Info("Backing node is asked for", "provider", k.Provider, "label", b.Label, "backing_label", b.Wants, "slots", len(b.Slots), "request", r.ID)
	return nil
}

// take takes over the node that a request was given.
func (k *Keeper) take(ctx context.Context, b *zkmodel.Backing, r *zkmodel.Request) (again time.Time, err error) {
	if len(r.Nodes) != 1 {
		return time.Time{}, k.Store.DeleteRequest(ctx, r.ID)
	}
	n, err := k.Store.Node(ctx, r.Nodes[0])
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return time.Time{}, k.Store.DeleteRequest(ctx, r.ID) // and another is made
	case err != nil:
		return time.Time{}, err
	case n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != r.ID:
		return time.Time{}, k.Store.DeleteRequest(ctx, r.ID)
	}
	err = k.Store.TakeBacking(ctx, b, n, r.ID)
	switch {
	case errors.Is(err, zkmodel.ErrBusy): // a launcher of Nodepool's unlocks it a moment later
		return k.Now().Add(busyPause), nil
	case err != nil:
		return time.Time{}, err
	}
	k.Step(step.BackingTaken)
	k.Log.Info("Backing node is there", "provider", k.Provider, "label", b.Label, "node", n.ID, "slots", len(b.Slots), "request", r.ID)
	return time.Time{}, nil
}

// keep sees to one that has a node.
func (k *Keeper) keep(ctx context.Context, s *seen, b *zkmodel.Backing) (again time.Time, err error) {
	n := s.nodes[b.Node]
	view, why := k.node(s, b), lost(b, n)
	if why == "" && n != nil && !n.Locked { // as far as it is seen
		contender, err := k.Store.BackingLock(ctx, k.Provider, b.Node)
		if err != nil {
			return time.Time{}, err
		}
		if contender == "" {
			why = "its node " + b.Node + " was unlocked"
		}
	}
	if why != "" {
		if view.Idle() {
			k.Log.Warn("Backing node is lost", "provider", k.Provider, "label", b.Label, "node", b.Node, "error", why)
			return time.Time{}, k.letGo(ctx, b)
		}
		if b.Failed == "" {
			b.Failed = why
			return time.Time{}, k.Store.SaveBacking(ctx, b)
		}
		return time.Time{}, nil
	}
	if !readable(n) {
		return time.Time{}, nil
	}
	switch said, _ := n.Backs(); {
	case b.Failed == "" && view.Failed != "": // a launcher of Nodepool's noted it, or its machine was taken back
		b.Failed = view.Failed
		return time.Time{}, k.Store.SaveBacking(ctx, b)
	case b.Failed != "" && !said.Failed:
		if err := k.mark(ctx, b, n); err != nil {
			return time.Time{}, err
		}
	}
	if !view.Idle() {
		return time.Time{}, nil
	}
	if view.Failed == "" && view.Leaving == "" && k.Frozen(b.Label) != "" {
		return time.Time{}, nil // until the file is mended
	}
	if until := k.Backed.Keeps(view); until.After(k.Now()) {
		return until, nil
	}
	return time.Time{}, k.give(ctx, b, n)
}

// readable reports whether a record says what its node is.
func readable(n *zkmodel.Node) bool { return n != nil && n.Broken == nil }

// letGo forgets a backing node that is lost, and gives up its lock, should we have it yet: what
// becomes of the node then is its provider's.
func (k *Keeper) letGo(ctx context.Context, b *zkmodel.Backing) error {
	contender, err := k.Store.BackingLock(ctx, k.Provider, b.Node)
	if err != nil {
		return err
	}
	return k.Store.DropBacking(ctx, b, contender)
}

// mark has the node's record, as it was listed, say that it has failed.
func (k *Keeper) mark(ctx context.Context, b *zkmodel.Backing, n *zkmodel.Node) error {
	contender, err := k.Store.BackingLock(ctx, k.Provider, b.Node)
	if err != nil || contender == "" {
		return err
	}
	return k.Store.MarkBacking(ctx, b, new(*n), contender)
}

// give gives a backing node back, whose record is as it was listed: what was decided by that
// holds for no other. The launcher of its provider deletes it.
func (k *Keeper) give(ctx context.Context, b *zkmodel.Backing, n *zkmodel.Node) error {
	contender, err := k.Store.BackingLock(ctx, k.Provider, b.Node)
	if err != nil {
		return err
	}
	if contender == "" {
		b.Failed = "its node " + b.Node + " is locked by another"
		k.Log.Warn("Backing node is lost", "provider", k.Provider, "label", b.Label, "node", b.Node, "error", b.Failed)
		return k.Store.DropBacking(ctx, b, "")
	}
	if err := k.Store.GiveBacking(ctx, b, new(*n), contender); err != nil {
		return err
	}
	k.Step(step.BackingGiven)
	k.Log.Info("Backing node is given back", "provider", k.Provider, "label", b.Label, "node", b.Node, "reason", b.Failed)
	return nil
}

var _ Changes = (*recipe.Subscription)(nil)
