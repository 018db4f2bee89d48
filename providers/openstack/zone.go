package openstack

import (
	"context"

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
		if zones, err = p.zones.get(ctx, p.now, p.listZones); err != nil {
			return "", err
		}
	}
	if len(zones) == 0 {
		return "", nil
	}
	return zones[p.pick(len(zones))], nil
}

// Zones lists the zones that take nodes; a cloud that does not tell has none.
func (p *Provider) Zones(ctx context.Context) ([]string, error) {
	return p.zones.get(ctx, p.now, p.listZones)
}

// listZones lists the zones that take nodes. Not every cloud tells; then there
// are none.
func (p *Provider) listZones(ctx context.Context) ([]string, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	page, err := availabilityzones.List(s.compute).AllPages(ctx)
	if is(err, 403) || is(err, 404) {
		p.log.Debug("The cloud does not tell its availability zones", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, p.failure(ctx, "list availability zones", err)
	}
	all, err := availabilityzones.ExtractAvailabilityZones(page)
	if err != nil {
		return nil, p.failure(ctx, "list availability zones", err)
	}
	var zones []string
	for _, z := range all {
		if z.ZoneState.Available {
			zones = append(zones, z.ZoneName)
		}
	}
	return zones, nil
}
