package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/launcher/canary"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/shared"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Order is what the nodes of one request have in common while they are launched.
type Order struct {
	Request *zkmodel.Request
	Pool    *pool.Pool
	Cloud   *supply.Provider
	// Asked is what the decision asked of the cloud's room.
	Asked lesson.Asked
	// Alone says that the request has one node only, which is written ready with what
	// becomes of it then (Run.Unsaved).
	Alone bool
	// Span is in which the nodes are launched; nil where nothing is told.
	Span *trace.Span
	// Gone says that the request is gone, so that no other provider takes it.
	Gone bool
}

// Run is one node, locked by us until its request is done.
type Run struct {
	Place schedule.Place
	Node  *zkmodel.Node
	Lock  *recipe.Held // nil before the node has begun, and once it was handed over
	Err   error        // of the launch

	Resumed bool // another launcher asked for its machine
	Unsaved bool // ready, and to be written with the request

	spec     providers.NodeSpec // of the next attempt, when it is chosen already
	notes    []canary.Note      // of the attempt that failed; counted with the next write
	accepted bool               // the cloud's acceptance has taught its lesson
	attempt  *trace.Span        // that is under way; nil where nothing is told
}

// Teacher learns from what launches meet in clouds, for all launchers: a *shared.Teacher.
type Teacher interface {
	// Refused is told of a refusal before the node's record says that its launch is over.
	// limited says that the cloud's own limits are heeded.
	Refused(ctx context.Context, c shared.Cloud, asked lesson.Asked, n *zkmodel.Node, limited bool, reason error)
	// Accepted is told once of each machine that the cloud has accepted as a trial.
	Accepted(ctx context.Context, c shared.Cloud, asked lesson.Asked, n *zkmodel.Node)
	// ZoneWorks learns that a machine in an availability zone has become ready.
	ZoneWorks(ctx context.Context, c shared.Cloud, zone string)
}

// Deps is what launches are given, all of it required but for Step.
type Deps struct {
	Store   *zkmodel.Store
	Config  *configs.Config
	Own     *inflight.Records // what is in our hands
	Jobs    *inflight.Jobs
	Image   func(name string) *zkmodel.Image // as the tree shows it
	Pools   []*pool.Pool
	Clouds  map[string]*supply.Provider
	Scanner *node.Scanner
	Boots   *node.Boots
	Book    *canary.Book // nil counts nothing
	Finder  node.Finder
	Teacher Teacher
	Quotas  inflight.Quotas

	Log hclog.Logger
	// Tried is told of each attempt to launch a node in a pool, and for whom; err is nil when
	// it is ready.
	Tried  func(p *pool.Pool, n *zkmodel.Node, requestor string, err error, took time.Duration)
	Step   func(step.Step)
	Notify func() // decisions may differ now
	Now    func() time.Time
	Ahead  func() time.Duration // how far ZooKeeper's clock is ahead of Now
}

// Launches brings nodes to ready.
type Launches struct {
	Deps
	searches node.Searches // for machines that were asked for without an answer
	partings partings
}

// New makes Launches. It does nothing by itself.
func New(deps Deps) *Launches {
	if deps.Step == nil {
		deps.Step = func(step.Step) {}
	}
	return &Launches{Deps: deps}
}

// Prepare chooses what a new node boots from and moves its record to building, or to
// deleting when there is nothing, with the reason in n.Err. Nothing is written yet.
//
// Errors: zkmodel.ErrTransition for a node that has come further.
func (l *Launches) Prepare(o *Order, n *Run) error {
	n.Node.Attempt = l.firstAttempt(o, n)
	to := zkmodel.NodeBuilding
	if n.spec, n.Err = l.choose(o, n, nil); n.Err != nil {
		to, n.Node.Reason = zkmodel.NodeDeleting, n.Err.Error()
	}
	return zkmodel.Move(n.Node, to, zkmodel.ByUs, l.epoch())
}

// Begin has write begin new nodes of an order, which are prepared: with what counts them, and
// some of them from a canary, where their image has one.
func (l *Launches) Begin(ctx context.Context, o *Order, nodes []*Run, write func(also ...recipe.Op) error) error {
	uploads := make([]string, len(nodes))
	for i, n := range nodes {
		if n.Node.State == zkmodel.NodeBuilding {
			uploads[i] = n.Node.ImageID
		}
	}
	return l.Book.Begin(ctx, o.Pool.Provider.Name, uploads, func(from []*zkmodel.Upload, also []recipe.Op) error {
		for i, u := range from {
			if uploads[i] == "" {
				continue
			}
			var err error
			if nodes[i].spec, err = l.choose(o, nodes[i], u); err != nil {
				return err
			}
		}
		return write(also...)
	})
}

// Bring brings a node that is building to ready, and sees that the machine of one that
// exists already answers. The error is why it may not be given away; it is in the record
// too, unless it is that ctx or the lock has ended.
func (l *Launches) Bring(ctx context.Context, o *Order, n *Run) error {
	switch {
	case n.Node.State == zkmodel.NodeBuilding:
		return l.launch(ctx, o, n)
	case o.Cloud.IsStatic():
		return l.checkAlive(ctx, o, n)
	}
	return n.Err
}

// launch makes a machine for a node and brings the node to ready, or to failed
// or aborted. Each attempt begins from nothing: what the last one left in
// the cloud is gone, or has a record of its own.
func (l *Launches) launch(ctx context.Context, o *Order, n *Run) (failed error) {
	ctx, cancel := n.Lock.Bind(ctx)
	defer cancel()
	span := o.Span.Begin("node").Set("node", n.Node.ID).Set("label", n.Place.Label).Set("provider", n.Node.Provider).Set("pool", n.Node.Pool)
	defer func() { span.End(failed) }()
	log := span.Log(l.Log).With("request", o.Request.ID, "event", o.Request.EventID, "node", n.Node.ID, "label", n.Place.Label, "provider", n.Node.Provider)
	last := o.Pool.Provider.LaunchRetries
	for n.Node.Attempt = max(n.Node.Attempt, 1); ; n.Node.Attempt++ {
		start := l.Now()
		n.attempt = span.Next("attempt").SetInt("attempt", n.Node.Attempt)
		err := l.attempt(ctx, o, n)
		if n.attempt.Set("image", n.Node.ImageID) != nil {
			n.attempt.Set("external_id", n.Node.ExternalID.Text())
		}
		n.attempt.End(err)
		span.Next("conclude")
		if err == nil {
			l.accepted(ctx, o, n)
			l.Teacher.ZoneWorks(ctx, o.Cloud, n.Node.AZ)
			l.trust().Booted(n.Node.ImageID)
			l.tried(o, n, nil, start, true)
			log.Info("Node is ready", "external_id", n.Node.ExternalID.Text(), "address", n.Node.InterfaceIP,
				"image", n.Node.ImageID, "took", l.Now().Sub(start))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // not the launch's fault
		}
		if Lost(err) {
			return err
		}
		l.tried(o, n, err, start, n.Node.Attempt >= last)
		onTrial := l.Book.Is(n.Node.ImageID)
		if !n.Node.Unanswered() { // else nothing has booted
			if n.notes = l.Book.Failed(n.Node, err); !onTrial { // whose failures all launchers count
				l.Boots.Note(n.Node.ImageID, err)
			}
		}
		if errors.Is(err, providers.ErrNotFound) && n.Node.ExternalID.IsNull() {
			l.trust().Missing(n.Node.ImageID)
		}
		log.Warn("Launch failed", "attempt", n.Node.Attempt, "of", last, "error", err)
		l.logConsole(ctx, o, n)
		if state := l.refused(ctx, o, n, err); state != "" {
			return errors.Join(err, l.giveUp(ctx, n, state, err))
		}
		err = unusable(o, err)
		undone := l.undo(ctx, o.Cloud, n)
		useless := errors.Is(err, providers.ErrInvalid) && !onTrial || errors.Is(err, providers.ErrUnusable) || errors.Is(err, pool.ErrNoImage)
		if n.Node.Attempt == last && last == o.Pool.Provider.LaunchRetries && l.trust().Other(n.Node.ImageID, o.Pool.Provider.Name) {
			last++ // one more, from the build before
		}
		if n.Node.Attempt >= last || useless {
			return errors.Join(err, l.giveUp(ctx, n, zkmodel.NodeFailed, errors.Join(err, undone)))
		}
		if o, err = l.again(ctx, log, o, n, err, undone); err != nil {
			return err
		}
	}
}

// refused is the state of a node whose request another pool, zone or provider serves after a failed attempt; "" if the launch
// goes on.
func (l *Launches) refused(ctx context.Context, o *Order, n *Run, err error) zkmodel.NodeState {
	switch {
	case errors.Is(err, providers.ErrQuota):
		l.Teacher.Refused(ctx, o.Cloud, o.Asked, n.Node, !o.Pool.Section.IgnoreProviderQuota, err)
		return zkmodel.NodeAborted
	case errors.Is(err, providers.ErrGivesWay), errors.Is(err, ErrZone):
		return zkmodel.NodeAborted
	case errors.Is(err, providers.ErrUnanswered): // the node's place stays taken
		return zkmodel.NodeFailed
	}
	return ""
}

// unusable is the error of a failed attempt. In a provider that cannot be used any more no attempt follows, and the request
// goes to another provider.
func unusable(o *Order, err error) error {
	if cloud := o.Cloud.View(); cloud.Held && cloud.Paused == "" {
		return fmt.Errorf("%w: %s: %w", providers.ErrUnusable, cloud.Trouble, err)
	}
	return err
}

// rest waits for as long as the cloud asked after a failed attempt.
func rest(ctx context.Context, log hclog.Logger, err error) error {
	pause := providers.PauseOf(err)
	if pause > 0 {
		log.Info("The cloud asked for a pause before the next attempt", "pause", pause)
	}
	return clock.Sleep(ctx, pause)
}

// tried counts how an attempt ended. last says that no other attempt follows.
func (l *Launches) tried(o *Order, n *Run, err error, start time.Time, last bool) {
	l.Tried(o.Pool, n.Node, o.Request.Requestor, err, l.Now().Sub(start))
	is := func(causes ...error) bool {
		return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
	}
	if !is(providers.ErrQuota, providers.ErrGivesWay, ErrZone, pool.ErrNoImage) {
		o.Cloud.Launched(n.Node.Pool, n.Place.Label, err, last || is(providers.ErrInvalid, providers.ErrUnusable, providers.ErrUnanswered))
	}
}

// Lost reports whether a launch has ended because another wrote the node's record, or ended its lock. That says
// nothing of the launch: who reads the record anew goes on from what it says.
func Lost(err error) bool {
	return errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrFenceLost)
}

// epoch is now, as records hold it.
func (l *Launches) epoch() zkmodel.Epoch { return zkmodel.EpochOf(l.Now()) }
