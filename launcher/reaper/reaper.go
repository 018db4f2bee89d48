package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/canary"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Cloud is a provider as deletions use it: a *supply.Provider.
type Cloud interface {
	// Use is the provider, or supply.ErrNotOpen while it is not open.
	Use() (supply.Machines, error)
	// Remove deletes a machine of a node; the proof is that of the node's record.
	Remove(ctx context.Context, proof zkmodel.Proof, node, externalID string) error
	// Doubts are the machines that cannot be used, by external id.
	Doubts() map[string]schedule.Doubt
	// Found notes that a machine exists which is missing in Doubts.
	Found(externalID string)
	// Section is its section of the configuration.
	Section() configs.Provider
}

// Prover proves that a record is gone: a *zkmodel.Mirror.
type Prover interface {
	Absent(ctx context.Context, s *recipe.Session, path string) (zkmodel.Proof, error)
}

// Adopter goes on with the launch of a node for stock, which is locked, to its end.
type Adopter interface {
	Adopt(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error
}

// Deps is what a Reaper is given, all of it required but for Step, Judged, Drained and Rival.
type Deps struct {
	Store  *zkmodel.Store
	Config *configs.Config
	Own    *inflight.Records // what is in our hands
	Jobs   *inflight.Jobs
	Tree   Prover
	// Request is a request as the tree has it, nil when it is gone; nil knows none.
	Request func(id string) *zkmodel.Request
	Clouds  map[string]Cloud // by provider
	Stock   []configs.Label  // those that we keep in stock
	Launch  Adopter
	Finder  node.Finder
	// Judged says of an idle node what was said of the build that it booted from, when that
	// is not to serve any more; "" when it may.
	Judged func(*zkmodel.Node) string
	// Drained says of the providers that are drained who wants that, and why; nil drains none.
	Drained func() map[string]string
	// Rival says who else has all nodes of a provider for himself as long as he is there; "" is
	// nobody. nil knows of none.
	Rival func(provider string) string
	Book  *canary.Book // nil counts nothing

	Log     hclog.Logger
	Refused *recipe.Throttle // of nodes that we may not change
	Deleted func(provider string)
	Step    func(step.Step)
	Now     func() time.Time
}

// Reaper sees to the nodes whose lock is free. Due, MakeRoom and Leaving are called by the
// goroutine that decides.
type Reaper struct {
	Deps
	duties     reap.Duties
	configured reap.Rules           // but for which providers are open
	told       map[string]time.Time // idle nodes that were told to make room, and when
	left       map[string]time.Time // nodes in launch that are left to Nodepool, and until when
}

// New makes a Reaper. It does nothing by itself.
func New(deps Deps) *Reaper {
	if deps.Step == nil {
		deps.Step = func(step.Step) {}
	}
	if deps.Judged == nil {
		deps.Judged = func(*zkmodel.Node) string { return "" }
	}
	if deps.Drained == nil {
		deps.Drained = func() map[string]string { return nil }
	}
	if deps.Rival == nil {
		deps.Rival = func(string) string { return "" }
	}
	return &Reaper{
		Deps: deps, duties: reap.NewDuties(), configured: configuredRules(deps.Config, deps.Stock), told: map[string]time.Time{},
	}
}

// of is the log of what is done to a node: it names the request that the node is of and, while that
// is there, Zuul's event.
func (r *Reaper) of(n *zkmodel.Node) hclog.Logger {
	if n.AllocatedTo == "" {
		return r.Log
	}
	log := r.Log.With("request", n.AllocatedTo)
	if r.Request == nil {
		return log
	}
	if one := r.Request(n.AllocatedTo); one != nil && one.EventID != "" {
		log = log.With("event", one.EventID)
	}
	return log
}

// Reap does what is due, under the node's lock and after a second look at it. It is inflight.ErrOutdated
// when that finds nothing to do.
func (r *Reaper) Reap(ctx context.Context, c reap.Reaping) error {
	id := c.Node.ID
	lock, n, err := r.Store.LockNode(ctx, id, "")
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return nil
	case err != nil:
		r.Log.Debug("Node is another's", "node", id, "error", err)
		return err
	}
	r.Step(step.DeleteLocked)
	r.Own.Note(n)
	defer r.Own.FinishNode(id)
	bound, cancel := lock.Bind(ctx)
	defer cancel()
	err = r.reapLocked(bound, lock, n, c)
	if err != nil && !errors.Is(err, inflight.ErrOutdated) && ctx.Err() == nil {
		r.Refused.Failed(r.Log, err, "Node is left alone for a moment", "node", id, "state", n.State)
	}
	cleanup, done := inflight.Cleanup(ctx, r.Store.Session())
	defer done()
	return errors.Join(err, lock.Release(cleanup))
}

// reapLocked does what is due with a node that we have locked and read afresh.
func (r *Reaper) reapLocked(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, c reap.Reaping) error {
	if n.Broken != nil {
		if c.Node.Broken == nil || !n.Leftover() {
			return inflight.ErrOutdated
		}
		return r.removeNowhere(ctx, lock, n)
	}
	if why := r.Rival(n.Provider); why != "" { // who has come since that was decided
		r.Log.Debug("Node is left alone", "node", n.ID, "reason", why)
		return nil
	}
	if n.State != c.Node.State || n.Provider != c.Node.Provider || c.Duty != reap.DutyAdopt && r.duties.Node(n.State) != c.Duty {
		return inflight.ErrOutdated // it was moved; another look decides anew
	}
	switch c.Duty {
	case reap.DutyAdopt:
		return r.Launch.Adopt(ctx, lock, n)
	case reap.DutySettle:
		return r.settleNode(ctx, lock, n, c)
	case reap.DutyRecover, reap.DutyExpire, reap.DutyRemove:
		if c.Duty == reap.DutyExpire && (n.StateTime != c.Node.StateTime || n.HoldExpiration != c.Node.HoldExpiration || !n.Since().Equal(c.Node.Since())) {
			return inflight.ErrOutdated // its hold was prolonged; another look decides anew
		}
		if reap.NoProvider(n) {
			return r.removeNowhere(ctx, lock, n)
		}
		if err := r.launchOver(ctx, n); err != nil {
			return err
		}
		return r.remove(ctx, lock, n, c.Why)
	case reap.DutyNone, reap.DutyAssign, reap.DutyReclaim:
	}
	return nil
}

// removeNowhere removes the record of a node that names no provider, once every
// configured cloud was listed and none has a machine with its id.
func (r *Reaper) removeNowhere(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	for name, c := range r.Clouds {
		p, err := c.Use()
		if err != nil {
			return err
		}
		list, err := p.ListNodes(ctx)
		if err != nil && !errors.Is(err, providers.ErrNotSupported) {
			return fmt.Errorf("look for a machine of node %s in %s: %w", n.ID, name, err)
		}
		for _, m := range list {
			if m.Metadata[providers.MetaNode] == n.ID && providers.OfSite(m.Metadata, name, r.Finder.Site) {
				return fmt.Errorf("node %s names no provider, and machine %s in %s has its id, which the search for leaks deletes first: %w", n.ID, m.ExternalID, name, zkmodel.ErrConflict)
			}
		}
	}
	// The lock is below the record, so it ends within this.
	if err := lock.DeleteTree(lock.Session().Context(), n.Path()); err != nil { //nolint:contextcheck // see above
		return err
	}
	r.Log.Info("Record of a node without a provider is deleted; no cloud has its machine", "node", n.ID)
	return nil
}

// launchOver makes sure that nobody goes on with the launch of a node: its request is
// proven to be gone, or waits, or is done. zkmodel.ErrConflict says that a launcher does.
func (r *Reaper) launchOver(ctx context.Context, n *zkmodel.Node) error {
	if !reap.InLaunch(n) || n.AllocatedTo == "" {
		return nil
	}
	request, err := r.Store.Request(ctx, n.AllocatedTo)
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		_, err := r.Tree.Absent(ctx, r.Store.Session(), zkmodel.RequestPath(n.AllocatedTo))
		return err
	case err != nil:
		return err
	case request.Broken != nil || request.State == zkmodel.RequestPending:
		return fmt.Errorf("node %s belongs to request %s, which may be pending: %w", n.ID, request.ID, zkmodel.ErrConflict)
	}
	return nil
}

// settleNode gives a ready node whose request is gone back for others to use, or
// ends one that nobody wanted for too long.
func (r *Reaper) settleNode(ctx context.Context, lock *recipe.Held, n *zkmodel.Node, c reap.Reaping) error {
	if n.AllocatedTo == "" {
		rules := r.rules()
		rules.Lag = c.Lag // another one would find otherwise, look for look
		rules.Frozen = Frozen(r.Config, []*zkmodel.Node{n})
		rules.Judged, rules.Drained = map[string]string{n.ID: r.Judged(n)}, r.Drained()
		doubt := r.doubt(n)
		rules.Interrupted = map[string]string{n.ID: doubt.Why}
		if _, _, due := reap.Ready(n, rules); rules.Useless(n) == "" && (due.IsZero() || due.After(r.Now())) {
			return inflight.ErrOutdated
		}
		if doubt.Missing {
			if err := r.lookAgain(ctx, n); err != nil {
				return err
			}
		}
		return r.remove(ctx, lock, n, c.Why)
	}
	switch _, err := r.Store.Request(ctx, n.AllocatedTo); {
	case err == nil:
		return inflight.ErrOutdated
	case !errors.Is(err, zkmodel.ErrNotFound):
		return err
	}
	r.of(n).Info("Node is free again", "node", n.ID)
	node.Free(n)
	return r.Store.SaveNode(ctx, lock, n)
}
