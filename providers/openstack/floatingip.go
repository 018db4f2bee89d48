package openstack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"poolkeeper/providers"
)

// ownedBy begins the description of the floating IPs that we make.
const ownedBy = "poolkeeper provider "

// reachable gives a server that runs a floating IP, if its pool wants one and
// it cannot be reached without.
func (p *Provider) reachable(ctx context.Context, s *server) (*server, error) {
	pool, ok := p.cfg.Pool(s.Metadata[providers.MetaPool])
	if !ok || !pool.AutoFloatingIP {
		return s, nil
	}
	known, err := p.networks.get(ctx, p.now, p.listNetworks)
	if err != nil {
		return nil, err
	}
	in, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	r := reachOf(s, known, in.cloud.Networks)
	outside := externalNetwork(known)
	if r.public4 != "" || r.private4 == "" || in.cloud.Private || outside == "" || noFloatingIPs(in) {
		return s, nil
	}
	if err := p.attachFloatingIP(ctx, in, s, r.fixed, outside); err != nil {
		return nil, fmt.Errorf("give it a floating IP: %w", err)
	}
	return p.awaitAddress(ctx, s.ID)
}

func noFloatingIPs(in *session) bool {
	return in.network == nil || strings.EqualFold(in.cloud.FloatingIPSource, "none")
}

// externalNetwork is the network that floating IPs come from, or "".
func externalNetwork(known []network) string {
	for _, n := range known {
		if n.External {
			return n.ID
		}
	}
	return ""
}

// attachFloatingIP makes a floating IP for a server, unless an earlier attempt
// has made it.
func (p *Provider) attachFloatingIP(ctx context.Context, in *session, s *server, fixed address, outside string) error {
	port, err := portOf(ctx, in, s.ID, fixed)
	if err != nil {
		return err
	}
	there, err := pages[floatingips.FloatingIP](ctx,
		floatingips.List(in.network, floatingips.ListOpts{PortID: port}), floatingips.ExtractFloatingIPsInto)
	if err != nil || len(there) > 0 {
		return failure(ctx, "list floating IPs", err)
	}
	_, err = floatingips.Create(ctx, in.network, floatingips.CreateOpts{
		FloatingNetworkID: outside, PortID: port, FixedIP: fixed.IP,
		Description: ownedBy + p.cfg.Name + ", node " + s.Metadata[providers.MetaNode],
	}).Extract()
	return failure(ctx, "create floating IP", err)
}

// portOf finds the port of a server that has an address.
func portOf(ctx context.Context, in *session, id string, fixed address) (string, error) {
	all, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{DeviceID: id}), ports.ExtractPortsInto)
	if err != nil {
		return "", failure(ctx, "list its ports", err)
	}
	for _, port := range all {
		for _, ip := range port.FixedIPs {
			if ip.IPAddress == fixed.IP {
				return port.ID, nil
			}
		}
	}
	return "", fmt.Errorf("%w: none of its %d ports has address %s", providers.ErrTransient, len(all), fixed.IP)
}

// awaitAddress waits until Nova has heard of a server's floating IP.
func (p *Provider) awaitAddress(ctx context.Context, id string) (*server, error) {
	bear := patience{limit: p.pace.patience}
	for start := time.Now(); ; {
		s, err := p.server(ctx, id)
		if why := bear.over(ctx, time.Now(), err); why != nil {
			return nil, why
		}
		if err == nil && len(floating(s)) > 0 {
			return s, nil
		}
		if err := sleep(ctx, p.pollAfter(time.Since(start))); err != nil {
			return nil, err
		}
	}
}

// floating are a server's floating addresses.
func floating(s *server) map[string]bool {
	found := map[string]bool{}
	for _, addresses := range s.Addresses {
		for _, a := range addresses {
			if a.Type == "floating" {
				found[a.IP] = true
			}
		}
	}
	return found
}

// releaseFloatingIPs gives a server's floating IPs back before it goes; behind
// it nobody would know whose they were.
func (p *Provider) releaseFloatingIPs(ctx context.Context, s *server) error {
	in, err := p.session(ctx)
	if err != nil || in.network == nil {
		return err
	}
	for ip := range floating(s) {
		all, err := pages[floatingips.FloatingIP](ctx,
			floatingips.List(in.network, floatingips.ListOpts{FloatingIP: ip}), floatingips.ExtractFloatingIPsInto)
		if err != nil {
			return failure(ctx, "look for floating IP "+ip, err)
		}
		for _, found := range all {
			if err := releaseFloatingIP(ctx, in, found.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func releaseFloatingIP(ctx context.Context, in *session, id string) error {
	err := floatingips.Delete(ctx, in.network, id).ExtractErr()
	if missing(err) {
		return nil
	}
	return failure(ctx, "delete floating IP "+id, err)
}
