package openstack

import (
	"context"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/availabilityzones"
)

// zone chooses where a node is made: where the launcher wants it, else one of
// the pool's zones, else one of the cloud's. "" leaves it to Nova.
func (p *Provider) zone(ctx context.Context, o offer, wanted string) (string, error) {
	if wanted != "" {
		return wanted, nil
	}
	zones := o.pool.AvailabilityZones
	if len(zones) == 0 {
		var err error
		if zones, err = p.Zones(ctx); err != nil {
			return "", err
		}
	}
	if len(zones) == 0 {
		return "", nil
	}
	return zones[p.pick(len(zones))], nil
}

// Zones lists the zones that take nodes. If the cloud does not list them, there are
// none, and Nova chooses the zone of each node.
//
// Errors: those of a log-in, and the end of ctx.
func (p *Provider) Zones(ctx context.Context) ([]string, error) {
	found, err := p.zones.get(ctx, p.now, p.listZones)
	return found.names, err
}

// zoneList is what the cloud lists; noList says that it did not.
type zoneList struct {
	names  []string
	noList bool
}

// age is how long a list is used. A cloud that did not list its zones is asked again soon.
func (z zoneList) age() time.Duration {
	if z.noList {
		return missAge
	}
	return zoneAge
}

// listZones lists the zones that take nodes.
func (p *Provider) listZones(ctx context.Context) (zoneList, error) {
	s, err := p.session(ctx)
	if err != nil {
		return zoneList{}, err
	}
	brief, cancel := dispensable(ctx)
	defer cancel()
	page, err := availabilityzones.List(s.compute).AllPages(brief)
	if is(err, 403) || is(err, 404) {
		p.log.Debug("The cloud does not list its availability zones", "error", err)
		return zoneList{}, nil
	}
	var all []availabilityzones.AvailabilityZone
	if err == nil {
		all, err = availabilityzones.ExtractAvailabilityZones(page)
	}
	if err = p.failure(ctx, "list availability zones", err); err != nil {
		if ctx.Err() != nil {
			return zoneList{}, err
		}
		if !p.zoneless.Swap(true) {
			p.log.Warn("Failed to list availability zones, nodes are created without a zone", "error", err)
		}
		return zoneList{noList: true}, nil
	}
	p.zoneless.Store(false)
	var found zoneList
	for _, z := range all {
		if z.ZoneState.Available {
			found.names = append(found.names, z.ZoneName)
		}
	}
	return found, nil
}
