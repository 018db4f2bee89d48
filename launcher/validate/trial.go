package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// createTime is how long a cloud may take to answer that says no more of it.
const createTime = 10 * time.Minute

// try makes a machine for a node of a plan, checks it, writes what came of it, and deletes
// it. When ctx ends, which it does with the turn, all is left as it is: who has the turn
// next begins anew, once the node, whose lock is free then, was deleted.
func (v *Validator) try(ctx context.Context, t *turn, p *plan, n *zkmodel.Node) {
	defer v.Own.FinishNode(n.ID)
	lock, err := v.lock(ctx, t, n)
	if err != nil {
		if ctx.Err() == nil {
			v.Log.Warn("Node that is to be tried is not begun; it is deleted, and another one made", "node", n.ID, "error", err)
		}
		return
	}
	v.Step(step.TrialBegun)
	defer func() {
		cleanup, done := inflight.Cleanup(ctx, v.Store.Session())
		defer done()
		_ = lock.Release(cleanup) // until the session ends; it is gone already where the node is
	}()
	ctx, cancel := lock.Bind(ctx)
	defer cancel()
	log := v.Log.With("upload", p.trial.Key().Path(), "node", n.ID, "provider", t.provider, "pool", n.Pool)
	log.Info("Upload is tried before it serves", "image", n.ImageID)
	why := "its trial is over"
	if v.save(ctx, t, p.trial, begun(p.was, n, p.control, v.clock())) {
		how := v.run(ctx, t, p, n, lock)
		if ctx.Err() != nil {
			return
		}
		v.Step(step.TrialChecked)
		if how.why != nil {
			why = v.Secrets.Text(how.why.Error())
		}
		if !errors.Is(how.why, errWithdrawn) {
			v.report(ctx, t, p, how)
		}
		v.Step(step.TrialTold)
	}
	if err := v.Remover.Remove(ctx, lock, n, why); err != nil && ctx.Err() == nil {
		log.Warn("Node that was tried is not deleted yet; no other is made before", "error", err)
	}
}

// lock begins a node: its record is building, and locked by us.
func (v *Validator) lock(ctx context.Context, t *turn, n *zkmodel.Node) (*recipe.Held, error) {
	if err := zkmodel.Move(n, zkmodel.NodeBuilding, zkmodel.ByUs, zkmodel.EpochOf(v.Now())); err != nil {
		return nil, err
	}
	locks, err := v.Store.BeginNodes(ctx, t.lock, []*zkmodel.Node{n})
	if err != nil {
		return nil, err
	}
	v.Own.Note(n)
	return locks[0], nil
}

// report writes what came of a node.
func (v *Validator) report(ctx context.Context, t *turn, p *plan, how ended) {
	was := resultOf(p.trial)
	serves := v.Image(p.trial.Image).Serving(p.trial.Provider, zkmodel.Suspect)
	r := after(p.trial, was, p.control, serves, how, v.clock())
	if !v.save(ctx, t, p.trial, r) {
		return
	}
	log := v.Log.With("upload", p.trial.Key().Path(), "provider", t.provider)
	switch r = *p.trial.Result; r.State {
	case zkmodel.ValidationPassed:
		log.Info("Upload is validated", "why", r.Why)
	case zkmodel.ValidationFailed:
		log.Warn("Upload has failed its validation; the one before it goes on to serve", "why", r.Why)
	case zkmodel.ValidationUntried:
		log.Warn("Upload could not be tried, through no fault of its own; it is tried again", "why", r.Why, "retry", r.Again.Time().Sub(v.clock()))
	default:
		log.Warn("Node that was tried has failed", "attempt", r.Tries, "why", r.Why)
	}
}

// run makes a machine for a node, waits for it, and has it checked.
func (v *Validator) run(ctx context.Context, t *turn, p *plan, n *zkmodel.Node, lock *recipe.Held) ended {
	ctx, done := t.until(ctx)
	defer done()
	cloud := v.Clouds[t.provider]
	m, err := cloud.Use()
	if err != nil {
		return ended{why: untried(err)}
	}
	id, err := v.create(ctx, m, p, n, lock)
	if err == nil {
		v.Step(step.TrialCreated)
		limit := time.Duration(p.trial.Timeout) * time.Second
		timed, cancel := clock.WithTimeoutCause(ctx, limit, fmt.Errorf("timeout of %s is over: %w", limit, context.DeadlineExceeded))
		defer cancel()
		var began bool
		err = v.check(timed, m, p, n, lock, id, func() { began = true; v.checking(ctx, t, p) })
		for errors.Is(err, providers.ErrRestarted) && timed.Err() == nil {
			began = false // it boots again
			err = v.check(timed, m, p, n, lock, id, func() { began = true; v.checking(ctx, t, p) })
		}
		if errors.Is(err, context.DeadlineExceeded) && began {
			return ended{why: err, timedOut: true}
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return ended{why: cause}
	}
	if errors.Is(err, providers.ErrQuota) {
		v.Teacher.Refused(ctx, cloud, p.asked, n, !p.pool.Section.IgnoreProviderQuota, err)
	}
	if err == nil && p.asked.Kind == lesson.Trial {
		v.Teacher.Accepted(ctx, cloud, p.asked, n)
	}
	return ended{why: blame(err)}
}

// blame marks an error that is no fault of what was booted: the cloud refuses, does not
// answer, or cannot be used, or the key is missing.
func blame(err error) error {
	for _, cause := range []error{
		providers.ErrQuota, providers.ErrUnanswered, providers.ErrTransient, providers.ErrUnusable, supply.ErrNotOpen, checks.ErrKey,
	} {
		if errors.Is(err, cause) {
			return untried(err)
		}
	}
	return err
}

// checking writes that the checks of a node have begun.
func (v *Validator) checking(ctx context.Context, t *turn, p *plan) {
	v.Step(step.TrialBooted)
	if p.control != nil {
		return
	}
	v.save(ctx, t, p.trial, checked(resultOf(p.trial)))
}

// create asks for a machine and returns its id.
func (v *Validator) create(ctx context.Context, m supply.Machines, p *plan, n *zkmodel.Node, lock *recipe.Held) (string, error) {
	spec := providers.NodeSpec{
		NodeID: n.ID, Hostname: "np" + n.ID, Pool: n.Pool, Label: p.label, AZ: p.zone, Username: n.Username,
		ImageID: p.trial.ExternalID, Format: p.trial.Format, Metadata: node.Metadata(n, v.Site),
	}
	if p.control != nil {
		spec.ImageID, spec.Format = p.control.ExternalID.Text(), p.control.Format
	}
	spec.Asking = func(ctx context.Context) error {
		n.Asked = zkmodel.EpochOf(v.clock())
		return v.saveNode(ctx, lock, n)
	}
	limit := cmp.Or(p.pool.Provider.UnansweredCreateTimeout, createTime)
	ctx, cancel := clock.WithTimeoutCause(ctx, limit, fmt.Errorf("the cloud has not answered within %s: %w", limit, providers.ErrUnanswered))
	defer cancel()
	id, err := m.CreateNode(ctx, spec)
	if n.Asked != 0 {
		v.Clouds[n.Provider].Heard(!errors.Is(err, providers.ErrUnanswered))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return "", fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	case !errors.Is(err, providers.ErrUnanswered):
		n.Asked = 0
	case n.Asked == 0:
		n.Asked = zkmodel.EpochOf(v.clock())
	}
	if err == nil {
		n.ExternalID = zkmodel.TextValue(id)
	}
	return id, err
}

// check waits until a machine runs and shows its host keys, and has it checked.
func (v *Validator) check(ctx context.Context, m supply.Machines, p *plan, n *zkmodel.Node, lock *recipe.Held, id string, began func()) error {
	note := func() error {
		err := v.saveNode(ctx, lock, n)
		v.Step(step.TrialNoted)
		return err
	}
	instance, err := node.Boot(ctx, m, id, note, func() {})
	if err != nil {
		return overdue(ctx, "boot", err)
	}
	node.Describe(n, instance)
	err = node.Watched(ctx, m, id, func(ctx context.Context) (err error) {
		n.HostKeys, err = v.Scanner.HostKeys(ctx, n, instance, true, 0)
		if err != nil {
			return err
		}
		if err := v.saveNode(ctx, lock, n); err != nil {
			return err
		}
		number, _ := n.ConnectionPort.Int()
		address := net.JoinHostPort(n.InterfaceIP, strconv.Itoa(number))
		return v.Check(ctx, checks.Machine{Address: address, Username: n.Username, HostKeys: n.HostKeys}, p.key, p.trial.Checks, began)
	})
	if err != nil && instance.Runs != "" {
		err = fmt.Errorf("%w (%s)", err, instance.Runs)
	}
	return err
}

// overdue is an error of what ended with ctx with the reason of that.
func overdue(ctx context.Context, what string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%s: %w (%w)", what, cause, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// saveNode writes a node of ours. What is wrong with that is no fault of the upload.
func (v *Validator) saveNode(ctx context.Context, lock *recipe.Held, n *zkmodel.Node) error {
	if err := v.Store.SaveNode(context.WithoutCancel(ctx), lock, n); err != nil {
		return untried(err)
	}
	v.Own.Note(n)
	return nil
}

// connection and port are how a machine of a trial is reached.
func connection(t *zkmodel.Validation) string { return cmp.Or(t.ConnectionType, "ssh") }

func port(t *zkmodel.Validation) int {
	return cmp.Or(t.ConnectionPort, node.DefaultPort(connection(t)))
}
