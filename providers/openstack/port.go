package openstack

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/netip"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/networkipavailabilities"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/quotas"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"poolkeeper/providers"
)

// A server that only a floating IP makes reachable gets its port, and that port its floating IP,
// before it is created. So a pool of addresses that is exhausted refuses before a server exists,
// and the floating IP is never without a port. Both carry the node's ids.

// portPrefix begins the external ids of ports in ListNodes.
const portPrefix = "port/"

// prepare creates the port and the floating IP of a server, if it needs one, and orders the server
// with that port. If we may not create ports, it only checks that a floating IP is free. The port
// is returned with an error, too: the caller deletes it.
func (p *Provider) prepare(ctx context.Context, o offer, node providers.NodeSpec, opts *servers.CreateOpts) (port string, err error) {
	in, err := p.session(ctx)
	if err != nil || !o.pool.AutoFloatingIP || in.cloud.Private || noFloatingIPs(in) {
		return "", err
	}
	attached, _ := opts.Networks.([]servers.Network)
	destination, source, err := p.wayIn(ctx, in, attached)
	if err != nil || destination == "" {
		return "", err
	}
	at, err := p.portOf(ctx, in, o, node, destination)
	if err == nil && at.ip != "" {
		err = leadTo(ctx, in, at, source, markOf(p.cfg.Name, node.Metadata))
		if err != nil {
			p.paths.forget() // someone may be about to add a router
			return at.port, p.noFloatingIP(o.pool.Name, err)
		}
		i := max(0, slices.IndexFunc(attached, func(n servers.Network) bool { return n.UUID == destination }))
		opts.Networks = slices.Replace(slices.Clone(attached), i, min(i+1, len(attached)), servers.Network{Port: at.port})
		return at.port, nil
	}
	if _, ours := errors.AsType[*keyError](err); ours || err != nil && !errors.Is(err, providers.ErrInvalid) && !errors.Is(err, providers.ErrNotFound) {
		return "", err
	}
	p.log.Debug("Ports cannot be created before servers", "pool", o.pool.Name, "error", err)
	if err := freeFloatingIP(ctx, in, source); err != nil {
		return at.port, p.noFloatingIP(o.pool.Name, err)
	}
	return "", p.abandon(ctx, at.port)
}

// wayIn returns the network to which the floating IP of a server leads, and the external one that it
// comes from. They are empty if the server may need none, or if it is not known.
func (p *Provider) wayIn(ctx context.Context, in *session, attached []servers.Network) (destination, source string, err error) {
	known, err := p.networks.get(ctx, p.now, p.listNetworks)
	if err != nil {
		return "", "", err
	}
	outside, err := natSources(known, in.cloud.Networks)
	if err != nil {
		return "", "", nil // WaitNode reports it, if the server needs a floating IP
	}
	brief, cancel := dispensable(ctx)
	defer cancel()
	found, err := p.paths.get(brief, p.now, p.listPaths)
	if err != nil {
		return "", "", context.Cause(ctx)
	}
	if inside := found.inside(attached, known, in.cloud.Networks); len(inside) > 0 {
		return p.natPath(ctx, in, inside, outside)
	}
	return "", "", nil
}

// portOf returns the port of a node that no server has yet, with its IPv4 address: one of an earlier
// attempt, or a new one. A network that gives addresses later leaves the address empty.
func (p *Provider) portOf(ctx context.Context, in *session, o offer, node providers.NodeSpec, network string) (landing, error) {
	mine := markOf(p.cfg.Name, node.Metadata)
	mine.launch = node.Metadata[providers.MetaLaunch]
	there, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{Name: node.Hostname, NetworkID: network, Limit: pageSize}), "ports")
	if err != nil {
		return landing{}, failure(ctx, "list ports", err)
	}
	i := slices.IndexFunc(there, func(port ports.Port) bool { return port.DeviceID == "" && port.Description == mine.String() })
	if i < 0 {
		order := ports.CreateOpts{NetworkID: network, Name: node.Hostname, Description: mine.String()}
		if len(o.pool.SecurityGroups) > 0 { // Nova does not apply them to a port that exists
			ids, err := seek(ctx, &p.groups, p.now, p.listGroups, o.groupIDs)
			if err != nil {
				return landing{}, err
			}
			order.SecurityGroups = &ids
		}
		made, err := ports.Create(ctx, in.network, order).Extract()
		if err != nil {
			return landing{}, failure(ctx, o.String()+": create its port", err)
		}
		there, i = []ports.Port{*made}, 0
	}
	at := landing{network: network, port: there[i].ID}
	for _, ip := range there[i].FixedIPs {
		if address, err := netip.ParseAddr(ip.IPAddress); err == nil && address.Is4() {
			at.ip = ip.IPAddress
			break
		}
	}
	return at, nil
}

// groupIDs are the ids of the security groups of a pool.
func (o offer) groupIDs(all []groups.SecGroup) ([]string, error) {
	var ids []string
	for _, name := range o.pool.SecurityGroups {
		id, problem := groupID(name, all)
		if problem != "" {
			return nil, o.invalid("security-groups", "%s", problem)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// freeFloatingIP returns an error if Neutron shows that no floating IP is free.
//
// Errors: providers.ErrQuota.
func freeFloatingIP(ctx context.Context, in *session, source string) error {
	brief, cancel := dispensable(ctx)
	defer cancel()
	account, ok := in.client.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
	})
	if ok {
		if project, err := account.ExtractProject(); err == nil && project != nil {
			quota, err := quotas.GetDetail(brief, in.network, project.ID).Extract()
			if err == nil && quota != nil && quota.FloatingIP.Limit >= 0 && quota.FloatingIP.Used+quota.FloatingIP.Reserved >= quota.FloatingIP.Limit {
				return fmt.Errorf("%w: the project uses %d of %d floating IPs", providers.ErrQuota, quota.FloatingIP.Used, quota.FloatingIP.Limit)
			}
		}
	}
	pool, err := networkipavailabilities.Get(brief, in.network, source).Extract()
	if err != nil || pool == nil {
		return context.Cause(ctx) // by default only administrators may know
	}
	used, known := new(big.Int).SetString(pool.UsedIPs, 10)
	total, limited := new(big.Int).SetString(pool.TotalIPs, 10)
	if known && limited && used.Cmp(total) >= 0 {
		return fmt.Errorf("%w: network %s uses %s of %s addresses", providers.ErrQuota, source, used, total)
	}
	return nil
}

// abandon deletes the port of a server that was not created, although its caller's time may be over.
func (p *Provider) abandon(ctx context.Context, port string) error {
	if port == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	in, err := p.session(ctx)
	if err != nil {
		return err
	}
	return removePort(ctx, in, port)
}

// removePort deletes a port that no server has, after its floating IPs.
func removePort(ctx context.Context, in *session, id string) error {
	port, err := ports.Get(ctx, in.network, id).Extract()
	if missing(err) || err == nil && port.DeviceID != "" {
		return nil
	}
	if err != nil {
		return failure(ctx, "get port "+id, err)
	}
	return deletePort(ctx, in, id)
}

// deletePort deletes the floating IPs of a port, and the port.
func deletePort(ctx context.Context, in *session, id string) error {
	if err := releaseFloatingIPsOf(ctx, in, id); err != nil {
		return err
	}
	return deleteLeak(ctx, in, leakedPort, id)
}

// loosePorts are the ports that were created for servers of ours and that no server has.
func (p *Provider) loosePorts(ctx context.Context) ([]providers.NodeInfo, error) {
	in, err := p.session(ctx)
	if err != nil || in.network == nil {
		return nil, err
	}
	all, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{Status: "DOWN", Limit: pageSize}), "ports")
	if missing(err) || is(err, http.StatusForbidden) {
		return nil, nil
	}
	if err != nil {
		return nil, p.failure(ctx, "list ports", err)
	}
	var list []providers.NodeInfo
	for _, port := range all {
		mark, ours := readMark(port.Description)
		if port.DeviceID != "" || !ours || mark.provider != p.cfg.Name {
			continue
		}
		list = append(list, providers.NodeInfo{ExternalID: portPrefix + port.ID, Name: port.Name, Part: true, Metadata: map[string]string{
			providers.MetaProvider: mark.provider, providers.MetaNode: mark.node, providers.MetaSite: mark.site, providers.MetaLaunch: mark.launch,
		}})
	}
	return list, nil
}
