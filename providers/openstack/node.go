package openstack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// WaitNode implements providers.Nodes.
func (p *Provider) WaitNode(ctx context.Context, externalID string) (providers.Instance, error) {
	op := "wait for server " + externalID
	if !isUUID(externalID) {
		return providers.Instance{}, p.failure(ctx, op, providers.ErrNotFound)
	}
	s, err := p.active(ctx, externalID)
	if err == nil {
		s, err = p.reachable(ctx, s)
	}
	if err != nil {
		return providers.Instance{}, p.failure(ctx, op, err)
	}
	instance, err := p.instance(ctx, s)
	return instance, p.failure(ctx, op, err)
}

// active waits until a server runs.
func (p *Provider) active(ctx context.Context, id string) (*server, error) {
	bear := patience{limit: p.pace.patience}
	for start := time.Now(); ; {
		pause := p.pollAfter(time.Since(start))
		s, err := p.look(ctx, id, time.Now().Add(-pause/2), start)
		if why := bear.over(ctx, time.Now(), err); why != nil {
			return nil, why
		}
		switch {
		case s == nil: // not in a list that is older than our question
		case s.Status == statusActive:
			return s, nil
		case s.Status == statusError:
			return nil, p.failed(ctx, s)
		}
		if err := clock.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// look finds a server in the shared list, which is read at t or later. One that
// a list does not have is asked for by itself, unless the list is older than
// asked: then it may not know it yet, and nil is the answer.
func (p *Provider) look(ctx context.Context, id string, t, asked time.Time) (*server, error) {
	list, err := p.roster.since(ctx, t)
	if err != nil {
		return nil, err
	}
	if s, ok := list.servers[id]; ok || list.began.Before(asked) {
		return s, nil
	}
	return p.server(ctx, id)
}

// failed says why a server is in state ERROR.
func (p *Provider) failed(ctx context.Context, s *server) error {
	message := s.Fault.Message
	if message == "" { // lists do not always tell
		if one, err := p.server(ctx, s.ID); err == nil {
			message = one.Fault.Message
		}
	}
	if message == "" {
		message = "the cloud does not say why"
	}
	if lacks := capacityError(message); lacks != nil {
		p.gate.full()
		return fmt.Errorf("%w: %s", lacks, message)
	}
	return fmt.Errorf("%w: %s", providers.ErrNodeFailed, message)
}

// instance describes a server that runs.
func (p *Provider) instance(ctx context.Context, s *server) (providers.Instance, error) {
	known, err := p.networks.get(ctx, p.now, p.listNetworks)
	if err != nil {
		return providers.Instance{}, err
	}
	in, err := p.session(ctx)
	if err != nil {
		return providers.Instance{}, err
	}
	r := reachOf(s, p.networkOrder(s, known), known, in.cloud.Networks)
	i := providers.Instance{
		ExternalID: s.ID, Cloud: p.cfg.Cloud, Region: in.cloud.Region, AZ: s.Zone, HostID: s.HostID,
		InterfaceIP: r.interfaceIP(in.cloud, p.ipv6),
		PublicIPv4:  r.public4, PublicIPv6: r.public6, PrivateIPv4: r.private4,
	}
	if i.PrivateIPv4 == "" {
		i.PrivateIPv4 = i.PublicIPv4 // as Nodepool has it
	}
	if i.InterfaceIP == "" {
		return i, fmt.Errorf("%w: it has no address", providers.ErrNodeFailed)
	}
	return i, nil
}

// DeleteNode implements providers.Nodes.
func (p *Provider) DeleteNode(ctx context.Context, externalID string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if port, ok := strings.CutPrefix(externalID, portPrefix); ok && isUUID(port) {
		in, err := p.session(ctx)
		if err != nil || in.network == nil {
			return err
		}
		return p.failure(ctx, "delete port "+port, removePort(ctx, in, port))
	}
	if !isUUID(externalID) {
		return nil // no cloud has it
	}
	return p.failure(ctx, "delete server "+externalID, p.removeAll(ctx, externalID))
}

// removeAll removes a server and its twins.
func (p *Provider) removeAll(ctx context.Context, id string) error {
	recent := time.Now().Add(-p.pace.poll)
	s, err := p.look(ctx, id, recent, time.Time{})
	if errors.Is(err, providers.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := p.roster.since(ctx, recent)
	if err != nil {
		return err
	}
	for _, twin := range list.twins(s) {
		p.log.Warn("Deleting a second server of a node", "node", s.Metadata[providers.MetaNode], "id", twin, "first", id)
		if err := p.remove(ctx, list.servers[twin]); err != nil {
			return err
		}
	}
	return p.remove(ctx, s)
}

// remove deletes a server, then the ports that we created for it, each after its floating IPs.
func (p *Provider) remove(ctx context.Context, s *server) error {
	in, err := p.session(ctx)
	if err != nil {
		return err
	}
	own, err := p.release(ctx, in, s)
	if err != nil {
		return err
	}
	again, err := p.askDelete(ctx, s.ID)
	if err != nil {
		return err
	}
	if err := p.awaitGone(ctx, s.ID, again); err != nil {
		return err
	}
	for _, port := range own {
		if err := deletePort(ctx, in, port); err != nil {
			return err
		}
	}
	return nil
}

// awaitGone waits until Nova does not know a server any more. With again, the
// request to delete it was not accepted and is repeated now and then.
func (p *Provider) awaitGone(ctx context.Context, id string, again bool) error {
	bear := patience{limit: p.pace.patience}
	for start := time.Now(); ; {
		pause := p.pollAfter(time.Since(start))
		list, err := p.roster.since(ctx, time.Now().Add(-pause/2))
		if why := bear.over(ctx, time.Now(), err); why != nil {
			return why
		}
		if err == nil {
			s := list.servers[id]
			switch {
			case s == nil:
				return nil
			case again && s.Task != taskDeleting:
				if again, err = p.askDelete(ctx, id); err != nil {
					return err
				}
			case s.Status == statusError && s.Task == "" && time.Since(start) > p.pace.call:
				return fmt.Errorf("%w: it cannot be deleted: %s", providers.ErrTransient, s.Fault.Message)
			}
		}
		if err := clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// askDelete asks Nova to delete a server. It reports whether to ask again: 409
// says that Nova is in the middle of something, a deletion perhaps.
func (p *Provider) askDelete(ctx context.Context, id string) (again bool, err error) {
	in, err := p.session(ctx)
	if err != nil {
		return false, err
	}
	err = servers.Delete(ctx, in.compute, id).ExtractErr()
	switch {
	case is(err, 409):
		return true, nil
	case missing(err):
		return false, nil
	}
	return false, failure(ctx, "ask for it", err)
}

// ListNodes implements providers.Nodes. It also lists the ports that were created for servers and that no server has.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	all, err := p.roster.since(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	var list []providers.NodeInfo
	for _, s := range all.servers {
		if s.Metadata[providers.MetaProvider] == p.cfg.Name {
			list = append(list, providers.NodeInfo{ExternalID: s.ID, Name: s.Name, Metadata: s.Metadata, Down: s.down()})
		}
	}
	loose, err := p.loosePorts(ctx)
	if err != nil && ctx.Err() == nil {
		err = &providers.PartialError{Err: err}
	}
	return append(list, loose...), err
}
