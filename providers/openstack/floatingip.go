package openstack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// mark names the owner of a floating IP or port, in its description.
type mark struct {
	provider, node string
	site           string // "" is one that an older version of us has made
	launch         string // of ports; a floating IP shares that of its port
}

// marks are the descriptions of floating IPs and ports that we make, or have made.
var marks = regexp.MustCompile(`^poolkeeper provider (.*), node ([^,]*?)(?:, site ([^,]*?))?(?:, launch ([^,]*))?$`)

// markOf returns the mark of what belongs to a machine with this metadata.
func markOf(provider string, metadata map[string]string) mark {
	return mark{provider: provider, node: metadata[providers.MetaNode], site: metadata[providers.MetaSite]}
}

// String is the description.
func (m mark) String() string {
	text := "poolkeeper provider " + m.provider + ", node " + m.node + ", site " + m.site
	if m.launch != "" {
		text += ", launch " + m.launch
	}
	return text
}

// readMark reads a description, if it is one of ours.
func readMark(description string) (mark, bool) {
	parts := marks.FindStringSubmatch(description)
	if parts == nil {
		return mark{}, false
	}
	return mark{parts[1], parts[2], parts[3], parts[4]}, true
}

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
	r := reachOf(s, p.networkOrder(s, known), known, in.cloud.Networks)
	if r.public4 != "" || len(r.fixed) == 0 || in.cloud.Private || noFloatingIPs(in) {
		return s, nil
	}
	outside, err := seek(ctx, &p.networks, p.now, p.listNetworks, func(known []network) ([]string, error) {
		return natSources(known, in.cloud.Networks)
	})
	if errors.Is(err, errNoOutside) {
		return s, nil
	}
	if err == nil {
		err = p.attachFloatingIP(ctx, in, s, r.fixed, outside)
	}
	if err != nil {
		p.paths.forget() // someone may be about to add a router
		return nil, p.noFloatingIP(pool.Name, err)
	}
	return p.awaitAddress(ctx, s.ID)
}

// noFloatingIP says why a server gets no floating IP, and by which key it wants one.
// What Neutron does not find is something of the networks, not the server.
func (p *Provider) noFloatingIP(pool string, err error) error {
	hint := ""
	if e := (*cloudError)(nil); errors.As(err, &e) {
		plain := *e
		if errors.Is(e.kind, providers.ErrNotFound) {
			plain.kind = providers.ErrInvalid
			if strings.Contains(e.message, "not reachable") {
				hint = "; the node's network needs a router to the external network (nat_source and nat_destination in clouds.yaml choose both), or the pool auto-floating-ip: false"
			}
		}
		err = &plain
	}
	return fmt.Errorf("provider %s, pool %s: auto-floating-ip: give it a floating IP: %w%s", p.cfg.Name, pool, err, hint)
}

func noFloatingIPs(in *session) bool {
	return in.network == nil || strings.EqualFold(in.cloud.FloatingIPSource, "none")
}

// attachFloatingIP makes a floating IP of one of the networks outside for a server, unless an
// earlier attempt has made it.
func (p *Provider) attachFloatingIP(ctx context.Context, in *session, s *server, fixed []address, outside []string) error {
	landings, err := landingsOf(ctx, in, s.ID, fixed)
	if err != nil {
		return err
	}
	var inside []string
	for _, l := range landings {
		inside = append(inside, l.network)
	}
	destination, source, err := p.natPath(ctx, in, inside, outside)
	if err != nil {
		return err
	}
	return leadTo(ctx, in, landings[slices.Index(inside, destination)], source, markOf(p.cfg.Name, s.Metadata))
}

// leadTo creates the floating IP of a port, unless it has one.
func leadTo(ctx context.Context, in *session, at landing, source string, owner mark) error {
	there, err := pages[floatingips.FloatingIP](ctx,
		floatingips.List(in.network, floatingips.ListOpts{PortID: at.port}), "floatingips")
	if err != nil || len(there) > 0 {
		return failure(ctx, "list floating IPs", err)
	}
	_, err = floatingips.Create(ctx, in.network, floatingips.CreateOpts{
		FloatingNetworkID: source, PortID: at.port, FixedIP: at.ip,
		Description: owner.String(),
	}).Extract()
	return failure(ctx, "create floating IP", err)
}

// landing is an address of a server to which a floating IP can lead.
type landing struct{ network, port, ip string }

// landingsOf finds the ports of a server that have its fixed addresses, in their order.
func landingsOf(ctx context.Context, in *session, id string, fixed []address) ([]landing, error) {
	all, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{DeviceID: id}), "ports")
	if err != nil {
		return nil, failure(ctx, "list its ports", err)
	}
	var found []landing
	for _, a := range fixed {
		for _, port := range all {
			if slices.ContainsFunc(port.FixedIPs, func(ip ports.IP) bool { return ip.IPAddress == a.IP }) {
				found = append(found, landing{port.NetworkID, port.ID, a.IP})
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: none of its %d ports has address %s", providers.ErrTransient, len(all), fixed[0].IP)
	}
	return found, nil
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
		if err := clock.Sleep(ctx, p.pollAfter(time.Since(start))); err != nil {
			return nil, err
		}
	}
}

// floating are a server's floating addresses.
func floating(s *server) map[string]bool {
	found := map[string]bool{}
	for _, addresses := range s.Addresses {
		for _, a := range addresses {
			if a.Type == typeFloating {
				found[a.IP] = true
			}
		}
	}
	return found
}

// release deletes the floating IPs that lead to a server, before the server and its ports are deleted. It returns the
// ports that we created for it: they, and their floating IPs, are deleted after the server.
func (p *Provider) release(ctx context.Context, in *session, s *server) (own []string, err error) {
	pool, known := p.cfg.Pool(s.Metadata[providers.MetaPool])
	wanted := (!known || pool.AutoFloatingIP) && !noFloatingIPs(in) // what we know of the server may be older than its floating IP
	if in.network == nil || len(floating(s)) == 0 && !wanted {
		return nil, nil
	}
	all, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{DeviceID: s.ID}), "ports")
	if err != nil {
		return nil, failure(ctx, "list its ports", err)
	}
	for _, port := range all {
		if _, ours := readMark(port.Description); ours {
			own = append(own, port.ID)
			continue
		}
		if err := releaseFloatingIPsOf(ctx, in, port.ID); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// releaseFloatingIPsOf deletes the floating IPs of a port; a Neutron without routers has none.
func releaseFloatingIPsOf(ctx context.Context, in *session, port string) error {
	all, err := pages[floatingips.FloatingIP](ctx, floatingips.List(in.network, floatingips.ListOpts{PortID: port}), "floatingips")
	if missing(err) {
		return nil
	}
	if err != nil {
		return failure(ctx, "look for floating IPs of port "+port, err)
	}
	for _, found := range all {
		if err := releaseFloatingIP(ctx, in, found.ID); err != nil {
			return err
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
