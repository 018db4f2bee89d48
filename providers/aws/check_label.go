package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

func poolKey(pool *configs.Pool) string { return configs.Item("pools", pool.Name) }

func labelKey(o offer) string { return configs.Item(poolKey(o.pool)+".labels", o.label.Name) }

// each visits the labels of all pools.
func (c *check) each(visit func(offer) error) error {
	for i := range c.cfg.Pools {
		for j := range c.cfg.Pools[i].Labels {
			o, err := c.offer(c.cfg.Pools[i].Name, c.cfg.Pools[i].Labels[j].Name)
			if err == nil {
				err = visit(o)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// pools looks at where nodes are to be made, and of which types.
func (c *check) pools(context.Context) error {
	for i := range c.cfg.Pools {
		pool := &c.cfg.Pools[i]
		place, ok := pool.Settings.(*configs.AWSPool)
		if !ok {
			continue
		}
		c.poolZones(pool)
		c.poolSubnets(pool, place)
		c.poolGroups(pool, place)
	}
	return c.each(func(o offer) error {
		if c.keys != nil && !c.keys[o.label.KeyName] {
			c.lack(fmt.Sprintf("the region has no key pair %q, it has %s", o.label.KeyName, has(slices.Collect(maps.Keys(c.keys)))), labelKey(o)+".key-name", labelKey(o))
		}
		for n, kind := range o.types() {
			c.labelType(o, n, kind)
		}
		return nil
	})
}

func (c *check) poolZones(pool *configs.Pool) {
	for n, zone := range pool.AvailabilityZones {
		if c.zones != nil && !slices.Contains(c.zones, zone) {
			c.lack(fmt.Sprintf("the region has no availability zone %q, it has %s", zone, has(c.zones)),
				fmt.Sprintf("%s.availability-zones[%d]", poolKey(pool), n), poolKey(pool)+".availability-zone", poolKey(pool))
		}
	}
}

func (c *check) poolSubnets(pool *configs.Pool, place *configs.AWSPool) {
	if c.subnets == nil {
		return
	}
	fits := 0
	for n, id := range place.SubnetIDs {
		at := []string{fmt.Sprintf("%s.subnet-ids[%d]", poolKey(pool), n), poolKey(pool) + ".subnet-id", poolKey(pool)}
		s, there := c.subnets[id]
		if !there {
			c.lack(fmt.Sprintf("the region has no subnet %q", id), at...)
			continue
		}
		if len(pool.AvailabilityZones) == 0 || slices.Contains(pool.AvailabilityZones, sdk.ToString(s.AvailabilityZone)) {
			fits++
		}
		if place.PublicIPv6 && !slices.ContainsFunc(s.Ipv6CidrBlockAssociationSet, func(a types.SubnetIpv6CidrBlockAssociation) bool {
			return a.Ipv6CidrBlockState != nil && a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated
		}) {
			c.lack(fmt.Sprintf("subnet %s has no IPv6 addresses, which public-ipv6 asks for", id), at...)
		}
	}
	if fits == 0 && len(place.SubnetIDs) > 0 && c.allThere(place.SubnetIDs) {
		c.lack("none of the subnets is in "+strings.Join(pool.AvailabilityZones, " or "), poolKey(pool)+".subnet-ids", poolKey(pool)+".subnet-id", poolKey(pool))
	}
}

func (c *check) allThere(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { _, there := c.subnets[id]; return !there })
}

func (c *check) poolGroups(pool *configs.Pool, place *configs.AWSPool) {
	if c.groups == nil {
		return
	}
	for n, id := range place.SecurityGroupIDs {
		at := []string{fmt.Sprintf("%s.security-group-ids[%d]", poolKey(pool), n), poolKey(pool) + ".security-group-id", poolKey(pool)}
		g, there := c.groups[id]
		if !there {
			c.lack(fmt.Sprintf("the region has no security group %q", id), at...)
			continue
		}
		for _, subnet := range place.SubnetIDs {
			if s, there := c.subnets[subnet]; there && sdk.ToString(s.VpcId) != sdk.ToString(g.VpcId) {
				c.lack(fmt.Sprintf("security group %s is of the network %s, subnet %s of %s", id, sdk.ToString(g.VpcId), subnet, sdk.ToString(s.VpcId)), at...)
				break
			}
		}
	}
}

// labelType looks whether any zone in which a label's node may be made has the type.
func (c *check) labelType(o offer, n int, kind string) {
	if c.offered == nil || c.zones == nil {
		return
	}
	at := []string{labelKey(o) + ".instance-type", fmt.Sprintf("%s.fleet.instance-types[%d]", labelKey(o), n), labelKey(o) + ".fleet", labelKey(o)}
	zones := c.offered[kind]
	if len(zones) == 0 {
		c.lack(fmt.Sprintf("no zone of the region has the instance type %q", kind), at...)
		return
	}
	wanted := slices.Clone(o.pool.AvailabilityZones)
	if len(wanted) == 0 && c.allThere(o.place.SubnetIDs) {
		for _, id := range o.place.SubnetIDs {
			wanted = append(wanted, sdk.ToString(c.subnets[id].AvailabilityZone))
		}
	}
	if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(zone string) bool { return slices.Contains(zones, zone) }) {
		c.lack(fmt.Sprintf("the instance type %s is not in %s, it is in %s", kind, strings.Join(wanted, ", "), has(slices.Clone(zones))), at...)
	}
}

// cloudImages looks whether each finds something.
func (c *check) cloudImages(ctx context.Context) error {
	for i := range c.cfg.CloudImages {
		named := &c.cfg.CloudImages[i]
		_, err := c.image(ctx, offer{label: &configs.PoolLabel{CloudImage: named.Name}}, "")
		at := configs.Item("cloud-images", named.Name)
		switch {
		case err == nil:
		case errors.Is(err, providers.ErrNotFound) && named.ImageID != "":
			c.lack(fmt.Sprintf("there is no image %s that can be used", named.ImageID), at+".image-id", at)
		case errors.Is(err, providers.ErrNotFound):
			c.lack("no image that can be used matches the image-filters", at+".image-filters", at)
		case errors.Is(err, providers.ErrInvalid):
			c.lack("Amazon refuses the image-filters: "+words(err), at+".image-filters", at)
		default:
			return err
		}
	}
	return nil
}

// room looks whether the account's quotas have room for one node of each label at all.
func (c *check) room(ctx context.Context) error {
	all, err := c.allQuotas(ctx)
	if err != nil {
		return err
	}
	return c.each(func(o offer) error {
		takes, err := c.NodeResources(ctx, o.pool.Name, o.label.Name)
		if errors.Is(err, providers.ErrInvalid) {
			return nil // it is told already
		}
		for _, code := range slices.Sorted(maps.Keys(takes)) {
			if q, ok := all[code]; ok && int(q.value) < takes[code] {
				c.lack(fmt.Sprintf("a node takes %d of the quota %s (%s), which is %g", takes[code], code, q.name, q.value),
					labelKey(o)+".instance-type", labelKey(o)+".fleet", labelKey(o))
			}
		}
		return err
	})
}
