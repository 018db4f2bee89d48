package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	noteTime    = 250 * time.Millisecond
	deleteTime  = 10 * time.Minute // how long the deletion of one machine may take
	undoTries   = 5                // how often a failed machine's deletion is begun before the node fails for good,
	undoTime    = 30 * time.Second // and until when
	consoleSize = 16 << 10         // bytes of a failed machine's console that are logged
)

// launch makes a machine for a node and brings the node to ready, or to failed
// or aborted. Each attempt begins from nothing, once what the last one left in
// the cloud is gone.
func (s *shift) launch(ctx context.Context, h *handling, n *handled) error {
	ctx, cancel := n.lock.Bind(ctx)
	defer cancel()
	log := s.log.With("request", h.request.ID, "node", n.node.ID, "label", n.place.Label, "provider", n.node.Provider)
	last := h.pool.provider.LaunchRetries
	for n.node.Attempt = max(n.node.Attempt, 1); ; n.node.Attempt++ {
		start := s.now()
		err := s.attempt(ctx, h, n)
		if err == nil {
			h.cloud.roomier()
			s.booted(n.node.ImageID) //nolint:contextcheck // the mark outlives the launch
			s.metrics.launch(h.pool, launchResult(nil), s.now().Sub(start))
			log.Info("Node is ready", "external_id", n.node.ExternalID.Text(), "address", n.node.InterfaceIP,
				"image", n.node.ImageID, "took", s.now().Sub(start))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // not the launch's fault
		}
		s.metrics.launch(h.pool, launchResult(err), s.now().Sub(start))
		s.boots.note(n.node.ImageID, err)
		if errors.Is(err, providers.ErrNotFound) && n.node.ExternalID.IsNull() {
			s.imageMissing(n.node.ImageID) //nolint:contextcheck // the mark outlives the launch
		}
		log.Warn("Launch failed", "attempt", n.node.Attempt, "of", last, "error", err)
		s.logConsole(ctx, h, n)
		if errors.Is(err, providers.ErrQuota) {
			s.refused(ctx, h.cloud, err)
			return errors.Join(err, s.giveUp(ctx, n, zkmodel.NodeAborted, err))
		}
		undone := s.undo(ctx, h.cloud, n.node)
		useless := errors.Is(err, providers.ErrInvalid) || errors.Is(err, ErrNoImage)
		if n.node.Attempt == last && last == h.pool.provider.LaunchRetries && s.otherImage(h, n) {
			last++ // one more, from the build before
		}
		if n.node.Attempt >= last || useless || undone != nil {
			return errors.Join(err, s.giveUp(ctx, n, zkmodel.NodeFailed, errors.Join(err, undone)))
		}
	}
}

// attempt is one launch, from the choice of the image to the ready node.
func (s *shift) attempt(ctx context.Context, h *handling, n *handled) error {
	if limit := h.pool.provider.LaunchTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("launch-timeout of %s is over: %w", limit, context.DeadlineExceeded))
		defer cancel()
	}
	p, err := h.cloud.use()
	if err != nil {
		return err
	}
	id, err := s.machine(ctx, p, h, n)
	if err != nil {
		return err
	}
	instance, err := s.boot(ctx, p, n, id)
	if err != nil {
		return err
	}
	s.step(StepBooted)
	describe(n.node, instance)
	if n.node.HostKeys, err = s.hostKeys(ctx, h.pool, n, instance); err != nil {
		return err
	}
	if err := s.table.moveNode(n.node, zkmodel.NodeReady, s.epoch()); err != nil {
		return err
	}
	if n.unsaved = len(h.nodes) == 1; n.unsaved {
		return nil // it is written with the request
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	s.step(StepReady)
	return nil
}

// machine is the id of the machine of this attempt: the one that the launcher
// before us made, where we have taken over, else a new one.
func (s *shift) machine(ctx context.Context, p providers.Provider, h *handling, n *handled) (string, error) {
	spec := n.spec
	n.spec = providers.NodeSpec{}
	var err error
	switch {
	case n.resumed && !n.node.ExternalID.IsNull():
		n.resumed = false
		return n.node.ExternalID.Text(), nil
	case n.resumed: // it may exist: a provider finds it by the node's id
		n.resumed = false
		spec, err = s.chosen(h, n)
	case spec.NodeID == "":
		if spec, err = s.choose(h, n); err == nil {
			err = s.save(ctx, n)
		}
	}
	if err != nil {
		return "", err
	}
	id, err := p.CreateNode(ctx, spec)
	if err != nil {
		return "", err
	}
	s.step(StepCreated)
	n.node.ExternalID = zkmodel.TextValue(id)
	return id, nil
}

// boot waits until a machine runs. Its id goes into the record, unless the
// machine is there so soon that it is written with the rest: until then it is
// found by the node's id.
func (s *shift) boot(ctx context.Context, p providers.Provider, n *handled, id string) (providers.Instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		instance providers.Instance
		err      error
	}
	booted := make(chan answer, 1)
	go func() {
		instance, err := p.WaitNode(ctx, id)
		booted <- answer{instance, err}
	}()
	timer := time.NewTimer(noteTime)
	defer timer.Stop()
	var failed error
	select {
	case a := <-booted:
		return a.instance, a.err
	case <-timer.C:
		if failed = s.save(ctx, n); failed != nil {
			cancel()
		} else {
			s.step(StepNoted)
		}
	}
	a := <-booted
	return a.instance, errors.Join(failed, a.err)
}

// undo removes what a failed attempt left in the cloud.
func (s *shift) undo(ctx context.Context, c *cloud, n *zkmodel.Node) error {
	if n.ExternalID.IsNull() {
		return nil // the next attempt finds a machine whose id we never heard of
	}
	p, err := c.use()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	pauses := backoff{first: firstPause, longest: shortPause}
	for begun, try := s.now(), 1; ; try++ {
		err := p.DeleteNode(ctx, n.ExternalID.Text())
		if err == nil {
			n.ExternalID = zkmodel.Value{}
			return nil
		}
		last := try == undoTries || s.now().Sub(begun) > undoTime
		if last || !errors.Is(err, providers.ErrTransient) || !sleep(ctx.Done(), pauses.after(try)) {
			return fmt.Errorf("delete what is left of it: %w", err)
		}
	}
}

// giveUp writes that a node will never be ready, and why. Whoever sees it
// unlocked deletes it.
func (s *shift) giveUp(ctx context.Context, n *handled, state zkmodel.NodeState, reason error) error {
	if n.node.State == zkmodel.NodeInit { // refused before the cloud was asked
		state = zkmodel.NodeDeleting
	}
	n.node.Reason = reason.Error()
	if err := s.table.moveNode(n.node, state, s.epoch()); err != nil {
		return err
	}
	if err := s.save(ctx, n); err != nil {
		return err
	}
	s.step(StepFailed)
	return nil
}

// save writes a node of ours. It ends with the node's lock, not with an attempt: a
// write that was broken off may have been done, and then the next would find
// another version.
func (s *shift) save(ctx context.Context, n *handled) error {
	ctx, cancel := n.lock.Bind(context.WithoutCancel(ctx))
	defer cancel()
	if err := s.store.SaveNode(ctx, n.lock, n.node); err != nil {
		return err
	}
	s.own.note(n.node)
	return nil
}

// logConsole shows the console of a machine that failed, where the label asks
// for that.
func (s *shift) logConsole(ctx context.Context, h *handling, n *handled) {
	p, err := h.cloud.use()
	if err != nil || !h.pool.labels[n.place.Label].ConsoleLog || n.node.ExternalID.IsNull() {
		return
	}
	text, err := p.ConsoleLog(ctx, n.node.ExternalID.Text(), consoleSize)
	if err != nil {
		s.log.Warn("Cannot read console", "node", n.node.ID, "error", err)
		return
	}
	s.log.Info("Console of the failed node", "node", n.node.ID, "console", string(text))
}
