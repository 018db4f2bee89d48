package kubernetes

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// CreateNode implements providers.Nodes. A node's object has a name by which it is found again;
// where that of Nodepool is taken by others, it has another one, and theirs is left alone.
func (p *Provider) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	id, err := p.createNode(ctx, spec)
	if err != nil {
		return "", p.kind.refused(ctx, spec.Pool, err)
	}
	return id, nil
}

func (p *Provider) createNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	p.site.learn(spec.Metadata[providers.MetaSite])
	_, label, err := p.label(spec.Pool, spec.Label)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	done, err := p.creating.Enter(ctx, spec.NodeID)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	defer done()
	first, second := p.kind.name(spec, ""), p.kind.name(spec, other(spec))
	if !first.isValid() || !second.isValid() {
		return "", fmt.Errorf("create node %s: %w: %q cannot be a name in a cluster (pool %s, label %s)",
			spec.NodeID, providers.ErrInvalid, first.id(), spec.Pool, spec.Label)
	}
	// A quota that is full refuses what is there already, too: it is looked for first.
	for _, at := range []place{second, first} {
		o, err := p.read(ctx, at)
		switch {
		case isGone(err):
		case err != nil: // it may be there
			return "", fmt.Errorf("create node %s: look for %s: %w", spec.NodeID, at.id(), failure(err))
		case !o.leaving() && p.of(o, spec):
			return at.id(), nil
		}
	}
	for _, at := range []place{first, second} {
		err := p.kind.create(ctx, at, spec, label)
		if err == nil {
			return at.id(), nil
		}
		if !is(err, reasonAlreadyExists) {
			return "", fmt.Errorf("create node %s as %s (pool %s, label %s): %w", spec.NodeID, at.id(), spec.Pool, spec.Label, failure(err))
		}
		o, err := p.read(ctx, at)
		switch {
		case err != nil:
			return "", fmt.Errorf("create node %s: read %s, which exists already: %w", spec.NodeID, at.id(), again(err))
		case !p.of(o, spec): // it is others'
		case o.leaving():
			return "", fmt.Errorf("create node %s: %w: %s of before is not gone yet", spec.NodeID, providers.ErrTransient, at.id())
		default:
			return at.id(), nil
		}
	}
	return "", fmt.Errorf("create node %s: %w: both %s and %s belong to others", spec.NodeID, providers.ErrTransient, first.id(), second.id())
}

// read reads the object at a place.
func (p *Provider) read(ctx context.Context, at place) (*object, error) {
	var o object
	if err := p.cluster.get(ctx, at.path(), &o); err != nil {
		return nil, failure(err)
	}
	if p.placeOf(&o) != at || o.Metadata.UID == "" { // it says nothing of what was asked for
		return nil, fmt.Errorf("%w: the answer is not %s, but %q", providers.ErrTransient, at.id(), providers.Words(p.placeOf(&o).id()))
	}
	return &o, nil
}

// WaitNode implements providers.Nodes.
func (p *Provider) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	instance, err := p.wait(ctx, id)
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for %s: %w", id, err)
	}
	instance.ExternalID, instance.Cloud, instance.SkipHostScan = id, p.own.Context, true
	return instance, nil
}

func (p *Provider) wait(ctx context.Context, id string) (providers.Instance, error) {
	at, ok := p.kind.place(id)
	if !ok {
		return providers.Instance{}, providers.ErrNotFound
	}
	o, err := p.read(ctx, at)
	if err != nil {
		return providers.Instance{}, err
	}
	ours, err := p.ours(o)
	if err != nil {
		return providers.Instance{}, err
	}
	if o.leaving() || !ours {
		return providers.Instance{}, fmt.Errorf("%w: it is being deleted, or is not ours", providers.ErrNotFound)
	}
	meta := o.metadata()
	pool, label, err := p.label(meta[providers.MetaPool], meta[labelKey])
	if err != nil {
		return providers.Instance{}, err
	}
	return p.kind.wait(ctx, o, pool, label)
}

// ListNodes implements providers.Nodes.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	all, err := p.kind.list(ctx)
	if err != nil {
		err = fmt.Errorf("list nodes of provider %s: %w", p.cfg.Name, failure(err))
	}
	var nodes []providers.NodeInfo
	for i := range all {
		o := &all[i]
		meta := o.metadata()
		if meta[providers.MetaProvider] != p.cfg.Name {
			continue
		}
		at := p.placeOf(o)
		if o.Metadata.Name == "" || !at.isValid() {
			return nil, fmt.Errorf("list nodes of provider %s: %w: the list has an object without a name that can be one: %q", p.cfg.Name, providers.ErrTransient, providers.Words(at.id()))
		}
		nodes = append(nodes, providers.NodeInfo{ExternalID: at.id(), Name: o.Metadata.Name, Metadata: meta, Down: o.down()})
	}
	return nodes, err
}

// placeOf is where an object is.
func (p *Provider) placeOf(o *object) place {
	if o.Metadata.Namespace == "" {
		return place{namespace: o.Metadata.Name}
	}
	return place{namespace: o.Metadata.Namespace, pod: o.Metadata.Name}
}

// nodeNumber ends what is named after a node.
var nodeNumber = regexp.MustCompile(`-[0-9]{10}$`)

// DeleteNode implements providers.Nodes. What is not ours is left alone: then ours is gone.
func (p *Provider) DeleteNode(ctx context.Context, id string) error {
	at, ok := p.kind.place(id)
	switch {
	case !ok && isName(id) && nodeNumber.MatchString(id): // it may be there, where we do not look
		return fmt.Errorf("delete %s: %w: it is of no pool of the configuration; put its pool back until its nodes are gone", id, providers.ErrUnusable)
	case !ok:
		return nil
	}
	o, err := p.read(ctx, at)
	if isGone(err) {
		return nil
	}
	ours := false
	if err == nil {
		ours, err = p.ours(o)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	if !ours {
		return nil
	}
	uid := o.Metadata.UID
	if !o.leaving() {
		err := p.cluster.remove(ctx, at.path(), uid)
		// With a conflict the object has gone, and another one has its name.
		if err != nil && !isGone(err) && !is(err, reasonConflict) {
			return fmt.Errorf("delete %s: %w", id, failure(err))
		}
	}
	err = poll(ctx, func() (bool, error) {
		o, err := p.read(ctx, at)
		if isGone(err) || err == nil && o.Metadata.UID != uid {
			return true, nil
		}
		return false, passing(err)
	})
	if err != nil {
		return fmt.Errorf("delete %s: it is not gone yet: %w", id, err)
	}
	return nil
}

const (
	pollFirst   = 100 * time.Millisecond
	pollLongest = 2 * time.Second
)

// poll calls done until it is, or fails, or ctx ends, at growing intervals.
func poll(ctx context.Context, done func() (bool, error)) error {
	for pause := pollFirst; ; pause = min(pause*3/2, pollLongest) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := clock.Sleep(ctx, pause); err != nil {
			return context.Cause(ctx)
		}
	}
}
