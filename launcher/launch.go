package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	undoLimit   = 10 * time.Minute // how long the deletion of one machine may take
	undoTries   = 5                // how often a failed machine's deletion is begun before the node fails for good,
	undoTime    = 30 * time.Second // and until when
	consoleSize = 16 << 10         // bytes of a failed machine's console that are logged
)

// launch makes a machine for a node and brings the node to ready, or to failed
// or aborted. Each attempt begins from nothing, once what the last one left in
// the cloud is gone.
func (s *session) launch(ctx context.Context, h *requestRun, n *nodeRun) error {
	ctx, cancel := n.lock.Bind(ctx)
	defer cancel()
	log := s.log.With("request", h.request.ID, "node", n.node.ID, "label", n.place.Label, "provider", n.node.Provider)
	last := h.pool.Provider.LaunchRetries
	for n.node.Attempt = max(n.node.Attempt, 1); ; n.node.Attempt++ {
		start := s.now()
		err := s.attempt(ctx, h, n)
		if err == nil {
			s.accepted(ctx, h, n)
			s.trust().Booted(n.node.ImageID)
			s.metrics.Launch(h.pool, nil, s.now().Sub(start))
			log.Info("Node is ready", "external_id", n.node.ExternalID.Text(), "address", n.node.InterfaceIP,
				"image", n.node.ImageID, "took", s.now().Sub(start))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // not the launch's fault
		}
		s.metrics.Launch(h.pool, err, s.now().Sub(start))
		if !n.node.Unanswered() { // else nothing has booted
			s.boots.Note(n.node.ImageID, err)
		}
		if errors.Is(err, providers.ErrNotFound) && n.node.ExternalID.IsNull() {
			s.trust().Missing(n.node.ImageID)
		}
		log.Warn("Launch failed", "attempt", n.node.Attempt, "of", last, "error", err)
		s.logConsole(ctx, h, n)
		if errors.Is(err, providers.ErrQuota) {
			s.teacher.Refused(ctx, h.cloud, h.asked, n.node, !h.pool.Section.IgnoreProviderQuota, err)
			return errors.Join(err, s.giveUp(ctx, n, zkmodel.NodeAborted, err))
		}
		if errors.Is(err, providers.ErrUnanswered) { // the request goes elsewhere; the node's place stays taken
			return errors.Join(err, s.giveUp(ctx, n, zkmodel.NodeFailed, err))
		}
		undone := s.undo(ctx, h.cloud, n)
		useless := errors.Is(err, providers.ErrInvalid) || errors.Is(err, providers.ErrUnusable) || errors.Is(err, pool.ErrNoImage)
		if n.node.Attempt == last && last == h.pool.Provider.LaunchRetries && s.trust().Other(n.node.ImageID, h.pool.Provider.Name) {
			last++ // one more, from the build before
		}
		if n.node.Attempt >= last || useless || undone != nil {
			return errors.Join(err, s.giveUp(ctx, n, zkmodel.NodeFailed, errors.Join(err, undone)))
		}
	}
}

// attempt is one launch, from the choice of the image to the ready node.
func (s *session) attempt(ctx context.Context, h *requestRun, n *nodeRun) error {
	if limit := h.pool.Provider.LaunchTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("launch-timeout of %s is over: %w", limit, context.DeadlineExceeded))
		defer cancel()
	}
	p, err := h.cloud.Use()
	if err != nil {
		return err
	}
	id, err := s.machine(ctx, p, h, n)
	if err != nil {
		return err
	}
	err = s.bootWatched(ctx, p, h, n, id)
	for errors.Is(err, providers.ErrRestarted) {
		s.log.Warn("Machine is started again by its provider; its launch goes on", "node", n.node.ID, "error", err)
		n.node.Reason = err.Error() // why it takes so long, and in which way it runs
		err = s.bootWatched(ctx, p, h, n, id)
	}
	if err != nil {
		return err
	}
	if err := zkmodel.Move(n.node, zkmodel.NodeReady, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	if n.unsaved = len(h.nodes) == 1; n.unsaved {
		s.own.Note(n.node) // another launch may begin
		s.notify()
		return nil // it is written with the request
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	s.step(step.Ready)
	return nil
}

// machine is the id of the machine of this attempt: the one that the launcher
// before us made, where we have taken over, else a new one.
func (s *session) machine(ctx context.Context, p supply.Machines, h *requestRun, n *nodeRun) (string, error) {
	spec := n.spec
	n.spec = providers.NodeSpec{}
	var err error
	switch {
	case n.resumed && !n.node.ExternalID.IsNull():
		n.resumed = false
		return n.node.ExternalID.Text(), nil
	case n.resumed || n.node.Unanswered(): // it may exist: what it boots from is in the record then
		n.resumed = false
		if id, err := s.begun(ctx, p, h, n); id != "" || err != nil {
			return id, err
		}
		fallthrough // the image of then may be gone by now
	case spec.NodeID == "":
		if spec, err = s.choose(h, n); err == nil {
			err = s.save(ctx, n)
		}
	}
	if err != nil {
		return "", err
	}
	id, err := s.create(ctx, p, h, n, spec)
	if err != nil {
		return "", err
	}
	s.step(step.Created)
	n.node.ExternalID = zkmodel.TextValue(id)
	return id, nil
}

// create asks for a machine. Without an answer it looks for it.
func (s *session) create(ctx context.Context, p supply.Machines, h *requestRun, n *nodeRun, spec providers.NodeSpec) (string, error) {
	spec.Asking = s.asking(n)
	id, failed := p.CreateNode(ctx, spec)
	s.answered(ctx, n, failed)
	switch {
	case failed == nil || !n.node.Unanswered():
		return id, failed
	case ctx.Err() != nil:
		return "", fmt.Errorf("%w: %s", context.Cause(ctx), failed.Error())
	}
	id, err := s.begun(ctx, p, h, n)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, failed.Error())
	case id == "":
		return "", fmt.Errorf("%w: it was not made within %s: %s",
			providers.ErrTransient, h.pool.Provider.UnansweredCreateTimeout, failed.Error())
	}
	return id, nil
}

// boot waits until a machine runs. Its id goes into the record, unless the
// machine is there so soon that it is written with the rest: until then it is
// found by the node's id.
func (s *session) boot(ctx context.Context, p supply.Machines, h *requestRun, n *nodeRun, id string) (providers.Instance, error) {
	note := func() error {
		err := s.save(ctx, n)
		if err == nil {
			s.step(step.Noted)
		}
		return err
	}
	return node.Boot(ctx, p, id, note, func() {
		if !h.cloud.Lessons().Lesson.Late {
			s.accepted(ctx, h, n)
		}
	})
}

// undo removes what a failed attempt left in the cloud.
func (s *session) undo(ctx context.Context, c *supply.Provider, h *nodeRun) error {
	n := h.node
	if n.ExternalID.IsNull() {
		return nil // the next attempt finds a machine whose id we never heard of
	}
	proof, err := zkmodel.UnderLock(h.lock, n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, undoLimit)
	defer cancel()
	pauses := kit.Backoff{First: inflight.FirstPause, Longest: inflight.ShortPause}
	for begun, try := s.now(), 1; ; try++ {
		err := c.Remove(ctx, proof, n.ID, n.ExternalID.Text())
		if err == nil {
			n.ExternalID = zkmodel.Value{}
			return nil
		}
		last := try == undoTries || s.now().Sub(begun) > undoTime
		if last || !errors.Is(err, providers.ErrTransient) || kit.Sleep(ctx, pauses.After(try)) != nil {
			return fmt.Errorf("delete what is left of it: %w", err)
		}
	}
}

// giveUp writes that a node will never be ready, and why. Whoever sees it
// unlocked deletes it.
func (s *session) giveUp(ctx context.Context, n *nodeRun, state zkmodel.NodeState, reason error) error {
	if n.node.State == zkmodel.NodeInit { // refused before the cloud was asked
		state = zkmodel.NodeDeleting
	}
	n.node.Reason = reason.Error()
	if err := zkmodel.Move(n.node, state, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	s.step(step.Failed)
	return nil
}

// save writes a node of ours. It ends with the node's lock, not with an attempt: a
// write that was broken off may have been done, and then the next would find
// another version.
func (s *session) save(ctx context.Context, n *nodeRun) error {
	ctx, cancel := n.lock.Bind(context.WithoutCancel(ctx))
	defer cancel()
	if err := s.store.SaveNode(ctx, n.lock, n.node); err != nil {
		return err
	}
	s.own.Note(n.node)
	return nil
}

// logConsole shows the console of a machine that failed, where the label asks
// for that.
func (s *session) logConsole(ctx context.Context, h *requestRun, n *nodeRun) {
	p, err := h.cloud.Use()
	if err != nil || !h.pool.Labels[n.place.Label].ConsoleLog || n.node.ExternalID.IsNull() {
		return
	}
	text, err := p.ConsoleLog(ctx, n.node.ExternalID.Text(), consoleSize)
	if err != nil {
		s.log.Warn("Cannot read console", "node", n.node.ID, "error", err)
		return
	}
	s.log.Info("Console of the failed node", "node", n.node.ID, "console", string(text))
}

// bootWatched waits until a machine runs and shows its host keys. A provider that
// can see a machine fail watches it meanwhile, and not a moment longer: from then
// on it is its user's.
//
// Errors: providers.ErrRestarted when the machine has to be waited for anew.
func (s *session) bootWatched(ctx context.Context, p supply.Machines, h *requestRun, n *nodeRun, id string) error {
	instance, err := s.boot(ctx, p, h, n, id)
	if err != nil {
		return err
	}
	s.step(step.Booted)
	node.Describe(n.node, instance)
	err = node.Watched(ctx, p, id, func(ctx context.Context) (err error) {
		n.node.HostKeys, err = s.scanner.HostKeys(ctx, n.node, instance, h.pool.ChecksHostKeys(n.place.Label), h.pool.Provider.BootTimeout)
		return err
	})
	if err != nil && instance.Runs != "" && !errors.Is(err, providers.ErrNodeFailed) && !errors.Is(err, providers.ErrRestarted) {
		err = fmt.Errorf("%w (%s)", err, instance.Runs)
	}
	return err
}

// accepted learns from a machine that the cloud has accepted, once for each.
func (s *session) accepted(ctx context.Context, h *requestRun, n *nodeRun) {
	if n.accepted || h.asked.Kind != lesson.Trial {
		return
	}
	n.accepted = true
	s.teacher.Accepted(ctx, h.cloud, h.asked, n.node)
}
