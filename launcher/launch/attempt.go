package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/canary"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	undoTime    = 10 * time.Second // how long a failed machine's deletion may take before another attempt is made beside it
	consoleSize = 16 << 10         // bytes of a failed machine's console that are logged
)

// attempt is one launch, from the choice of the image to the ready node.
func (l *Launches) attempt(ctx context.Context, o *Order, n *Run) error {
	if limit := o.Pool.Provider.LaunchTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeoutCause(ctx, limit, fmt.Errorf("launch-timeout of %s is over: %w", limit, context.DeadlineExceeded))
		defer cancel()
	}
	p, err := o.Cloud.Use()
	if err != nil {
		return err
	}
	id, err := l.machine(ctx, p, o, n)
	if err != nil {
		return err
	}
	err = l.bootWatched(ctx, p, o, n, id)
	for errors.Is(err, providers.ErrRestarted) {
		o.Span.Log(l.Log).Warn("Machine is started again by its provider; its launch goes on", "request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "error", err)
		n.Node.Reason = err.Error() // why it takes so long, and in which way it runs
		err = l.bootWatched(ctx, p, o, n, id)
	}
	if err != nil {
		return err
	}
	n.attempt.Next("record")
	if said := l.trust().Withdrawn(n.Node.ImageID, o.Pool.Provider.Name); said != "" {
		return fmt.Errorf("its build was %s, while it booted", said) // the next attempt boots from what serves
	}
	was := *n.Node
	if err := zkmodel.Move(n.Node, zkmodel.NodeReady, zkmodel.ByUs, l.epoch()); err != nil {
		return err
	}
	if n.Unsaved = o.Alone; n.Unsaved {
		l.Own.Note(n.Node) // another launch may begin
		l.Notify()
		return nil // it is written with the request
	}
	if err := l.Save(ctx, n); err != nil {
		*n.Node = was // its record does not say so
		return err
	}
	l.Step(step.Ready)
	return nil
}

// machine is the id of the machine of this attempt: the one that the launcher
// before us made, where we have taken over, else a new one.
func (l *Launches) machine(ctx context.Context, p supply.Machines, o *Order, n *Run) (string, error) {
	n.attempt.Next("create")
	spec := n.spec
	n.spec = providers.NodeSpec{}
	var err error
	switch {
	case n.Resumed && !n.Node.ExternalID.IsNull():
		n.Resumed = false
		return n.Node.ExternalID.Text(), nil
	case n.Resumed || n.Node.Unanswered(): // it may exist: what it boots from is in the record then
		n.Resumed = false
		if id, err := l.begun(ctx, p, o, n); id != "" || err != nil {
			return id, err
		}
		fallthrough // the image of then may be gone by now
	case spec.NodeID == "":
		if spec, err = l.choose(o, n, nil); err == nil {
			err = l.saveCounted(ctx, n, append(n.notes, l.Book.Again(n.Node))...)
		}
	}
	if err == nil {
		err = l.zoneOpen(o, n)
	}
	if err != nil {
		return "", err
	}
	id, err := l.create(ctx, p, o, n, spec)
	if err != nil {
		return "", err
	}
	l.Step(step.Created)
	n.Node.ExternalID = zkmodel.TextValue(id)
	return id, nil
}

// create asks for a machine. Without an answer it looks for it.
func (l *Launches) create(ctx context.Context, p supply.Machines, o *Order, n *Run, spec providers.NodeSpec) (string, error) {
	spec.Asking = l.asking(n)
	answered := o.Cloud.Timing(ctx, "create server")
	id, failed := p.CreateNode(ctx, spec)
	answered()
	l.answered(ctx, n, failed)
	switch {
	case failed == nil || !n.Node.Unanswered():
		return id, failed
	case ctx.Err() != nil:
		return "", fmt.Errorf("%w: %s", context.Cause(ctx), failed.Error())
	}
	id, err := l.begun(ctx, p, o, n)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, failed.Error())
	case id == "":
		return "", fmt.Errorf("%w: it was not made within %s: %s",
			providers.ErrTransient, o.Pool.Provider.UnansweredCreateTimeout, failed.Error())
	}
	return id, nil
}

// boot waits until a machine runs. Its id goes into the record, unless the
// machine is there so soon that it is written with the rest: until then it is
// found by the node's id.
func (l *Launches) boot(ctx context.Context, p supply.Machines, o *Order, n *Run, id string) (providers.Instance, error) {
	note := func() error {
		err := l.Save(ctx, n)
		if err == nil {
			l.Step(step.Noted)
		}
		return err
	}
	return node.Boot(ctx, p, id, note, func() {
		if !o.Cloud.Lessons().Lesson.Late {
			l.accepted(ctx, o, n)
		}
	})
}

// accepted teaches that the cloud has accepted a machine, once for each, if it was asked
// for as a trial.
func (l *Launches) accepted(ctx context.Context, o *Order, n *Run) {
	if n.accepted || o.Asked.Kind != lesson.Trial {
		return
	}
	n.accepted = true
	l.Teacher.Accepted(ctx, o.Cloud, o.Asked, n.Node)
}

// undo removes what a failed attempt left in the cloud. The error, which is also in the record of the node, is why
// that is not done within undoTime.
func (l *Launches) undo(ctx context.Context, c *supply.Provider, n *Run) error {
	if n.Node.ExternalID.IsNull() {
		return nil // the next attempt finds a machine whose id we never heard of
	}
	proof, err := zkmodel.UnderLock(n.Lock, n.Node)
	if err != nil {
		return err
	}
	ctx, cancel := clock.WithTimeoutCause(ctx, undoTime, fmt.Errorf("its deletion is not confirmed after %s", undoTime))
	defer cancel()
	pauses := kit.Backoff{First: inflight.FirstPause, Longest: inflight.ShortPause}
	for try := 1; ; try++ {
		err := c.Remove(ctx, proof, n.Node.ID, n.Node.ExternalID.Text())
		if err == nil {
			n.Node.ExternalID, n.Node.Slot, n.Node.DriverData = zkmodel.Value{}, zkmodel.Value{}, zkmodel.Value{} // its slot is another's by now
			return nil
		}
		if errors.Is(err, providers.ErrTransient) && clock.Sleep(ctx, pauses.After(try)) == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		n.Node.DeleteError = zkmodel.BriefTrouble(err.Error())
		return fmt.Errorf("delete what is left of it: %w", err)
	}
}

// giveUp writes that a node will never be ready, and why. Whoever sees it
// unlocked deletes it.
func (l *Launches) giveUp(ctx context.Context, n *Run, state zkmodel.NodeState, reason error) error {
	was := *n.Node
	if n.Node.State == zkmodel.NodeInit { // refused before the cloud was asked
		state = zkmodel.NodeDeleting
	}
	n.Node.Reason = reason.Error()
	if err := zkmodel.Move(n.Node, state, zkmodel.ByUs, l.epoch()); err != nil {
		return err
	}
	if err := l.saveCounted(ctx, n, n.notes...); err != nil {
		*n.Node = was // its record says that it is being launched
		return err
	}
	l.Step(step.Failed)
	return nil
}

// Save writes a node of ours. It ends with the node's lock, not with an attempt: a
// write that was broken off may have been done, and then the next would find
// another version.
func (l *Launches) Save(ctx context.Context, n *Run) error { return l.saveCounted(ctx, n) }

// saveCounted is Save with what is to be counted in the same transaction.
func (l *Launches) saveCounted(ctx context.Context, n *Run, notes ...canary.Note) error {
	held, cancel := n.Lock.Bind(context.WithoutCancel(ctx))
	defer cancel()
	err := l.Store.Session().UntilAllowed(ctx, func() error {
		return l.Book.Count(held, notes, func(also ...recipe.Op) error { return l.Store.SaveNode(held, n.Lock, n.Node, also...) })
	})
	if err != nil {
		return err
	}
	n.notes = nil
	l.Own.Note(n.Node)
	return nil
}

// logConsole shows the console of a machine that failed, where the label asks
// for that.
func (l *Launches) logConsole(ctx context.Context, o *Order, n *Run) {
	p, err := o.Cloud.Use()
	if err != nil || !o.Pool.Labels[n.Place.Label].ConsoleLog || n.Node.ExternalID.IsNull() {
		return
	}
	text, err := p.ConsoleLog(ctx, n.Node.ExternalID.Text(), consoleSize)
	if err != nil {
		o.Span.Log(l.Log).Warn("Cannot read console", "request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "error", err)
		return
	}
	o.Span.Log(l.Log).Info("Console of the failed node", "request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "console", string(text))
}

// bootWatched waits until a machine runs and shows its host keys. A provider that
// can see a machine fail watches it meanwhile, and not a moment longer: from then
// on it is its user's.
//
// Errors: providers.ErrRestarted when the machine has to be waited for anew.
func (l *Launches) bootWatched(ctx context.Context, p supply.Machines, o *Order, n *Run, id string) error {
	n.attempt.Next("boot")
	instance, err := l.boot(ctx, p, o, n, id)
	if err != nil {
		return err
	}
	l.Step(step.Booted)
	node.Describe(n.Node, instance)
	n.attempt.Next("host keys")
	err = node.Watched(ctx, p, id, func(ctx context.Context) (err error) {
		n.Node.HostKeys, err = l.Scanner.HostKeys(ctx, n.Node, instance, o.Pool.ChecksHostKeys(n.Place.Label), o.Pool.Provider.BootTimeout)
		return err
	})
	if backed, is := p.(providers.Backed); is && errors.Is(err, node.ErrKeyScan) && ctx.Err() == nil {
		err = errors.Join(err, backed.Unreachable(ctx, id, err)) // other nodes on its backing node would meet the same
	}
	if err != nil && instance.Runs != "" && !errors.Is(err, providers.ErrNodeFailed) && !errors.Is(err, providers.ErrRestarted) {
		err = fmt.Errorf("%w (%s)", err, instance.Runs)
	}
	return err
}
