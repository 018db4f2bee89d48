package openstack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// check collects what the configuration names and the cloud does not have.
type check struct {
	*Provider

	missing []providers.Missing
}

// CheckCloud implements providers.Checker: flavors, cloud images, networks, key pairs,
// security groups, availability zones, the volume service, and routers for floating IPs.
func (p *Provider) CheckCloud(ctx context.Context) ([]providers.Missing, error) {
	c := &check{Provider: p}
	var failed error
	for _, part := range []func(context.Context) error{c.trust, c.labels, c.volumes, c.cloudImages, c.keys, c.groups, c.poolZones, c.routers} {
		if err := part(ctx); err != nil && (failed == nil || err.Error() != failed.Error()) {
			failed = errors.Join(failed, err)
		}
		if p.login.current() == nil {
			break // nothing else can be asked either
		}
	}
	return c.missing, failed
}

// lack notes what is missing.
func (c *check) lack(message string, keys ...string) {
	c.missing = append(c.missing, providers.Missing{Keys: keys, Message: message})
}

func poolKey(pool configs.Pool) string { return configs.Item("pools", pool.Name) }

func labelKey(pool configs.Pool, label configs.PoolLabel) string {
	return configs.Item(poolKey(pool)+".labels", label.Name)
}

// labels asks for each label's flavor and networks, as a launch would.
func (c *check) labels(ctx context.Context) error {
	for _, pool := range c.cfg.Pools {
		for _, label := range pool.Labels {
			o := offer{provider: c.cfg.Name, pool: &pool, label: &label}
			_, err := c.flavor(ctx, o)
			if wrong, ok := errors.AsType[*keyError](err); ok {
				c.lack(wrong.message, labelKey(pool, label)+"."+wrong.key, labelKey(pool, label))
			} else if err != nil {
				return err
			}
			if err := c.labelNetworks(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// labelNetworks asks for the networks of a label, which are its own or its pool's.
func (c *check) labelNetworks(ctx context.Context, o offer) error {
	if len(o.label.Networks) == 0 {
		return nil
	}
	all, err := c.networks.get(ctx, c.now, c.listNetworks)
	if err != nil {
		return err
	}
	for i, name := range o.label.Networks {
		_, err := networkID(o, name, all)
		if wrong, ok := errors.AsType[*keyError](err); ok {
			at := fmt.Sprintf(".networks[%d]", i)
			c.lack(wrong.message, labelKey(*o.pool, *o.label)+at, poolKey(*o.pool)+at, labelKey(*o.pool, *o.label))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// trust reports a cloud whose certificates are not checked.
func (c *check) trust(ctx context.Context) error {
	s, err := c.session(ctx)
	if err == nil && s.cloud.Verify.Off {
		c.lack("clouds.yaml: verify: false: certificates are not checked, and anyone between us and the cloud can read the credentials; name the authority with cacert", "cloud")
	}
	return err
}

// volumes asks for the volume service, where labels boot from volumes.
func (c *check) volumes(ctx context.Context) error {
	s, err := c.session(ctx)
	if err != nil || s.volume != nil {
		return err
	}
	for _, pool := range c.cfg.Pools {
		for _, label := range pool.Labels {
			if label.BootFromVolume {
				c.lack("the catalog of the cloud has no volume service", labelKey(pool, label)+".boot-from-volume", labelKey(pool, label))
			}
		}
	}
	return nil
}

// routers looks for a way from the networks of labels to those that floating IPs come from.
func (c *check) routers(ctx context.Context) error {
	s, err := c.session(ctx)
	if err != nil || noFloatingIPs(s) || s.cloud.Private {
		return err
	}
	known, err := c.networks.get(ctx, c.now, c.listNetworks)
	if err != nil {
		return err
	}
	outside, err := natSources(known, s.cloud.Networks)
	if errors.Is(err, errNoOutside) {
		return nil // nodes get no floating IPs
	}
	if err != nil {
		c.lack(err.Error(), "cloud")
		return nil
	}
	found, err := c.paths.get(ctx, c.now, c.listPaths)
	if err != nil {
		return err
	}
	for _, pool := range c.cfg.Pools {
		for _, label := range pool.Labels {
			if pool.AutoFloatingIP && len(label.Networks) > 0 && found.blind(label.Networks, outside, known, s.cloud.Networks) {
				c.lack("no router leads from the networks of the label to an external network, so that nodes get no floating IP: add a router, or write auto-floating-ip: false",
					poolKey(pool)+".auto-floating-ip", labelKey(pool, label)+".networks", labelKey(pool, label))
			}
		}
	}
	return nil
}

// cloudImages asks for the images that the cloud is said to have already.
func (c *check) cloudImages(ctx context.Context) error {
	for _, image := range c.cfg.CloudImages {
		at := configs.Item("cloud-images", image.Name)
		if image.ImageID != "" {
			there, err := c.hasImage(ctx, image.ImageID)
			if err != nil {
				return err
			}
			if !there {
				c.lack(fmt.Sprintf("the cloud has no image with the id %q", image.ImageID), at+".image-id", at)
			}
			continue
		}
		id, err := c.imageNamed(ctx, image.ImageName)
		if err != nil {
			return err
		}
		if id == "" {
			c.lack(fmt.Sprintf("the cloud has no active image called %q", image.ImageName), at+".image-name", at+".name", at)
		}
	}
	return nil
}

// hasImage reports whether there is an image with an id.
func (c *check) hasImage(ctx context.Context, id string) (bool, error) {
	s, err := c.session(ctx)
	if err != nil || !isUUID(id) {
		return false, err
	}
	_, err = images.Get(ctx, s.image, id).Extract()
	if missing(err) {
		return false, nil
	}
	return err == nil, c.failure(ctx, "get image "+id, err)
}

// keys asks for the key pairs of our user.
func (c *check) keys(ctx context.Context) error {
	var names []string
	asked := false
	for _, pool := range c.cfg.Pools {
		for _, label := range pool.Labels {
			if label.KeyName == "" {
				continue
			}
			if !asked {
				var err error
				if names, err = c.keyPairs(ctx); err != nil {
					return err
				}
				asked = true
			}
			if !slices.Contains(names, label.KeyName) {
				c.lack(fmt.Sprintf("the cloud has no key pair %q, it has %s", label.KeyName, listed(names)),
					labelKey(pool, label)+".key-name", labelKey(pool, label))
			}
		}
	}
	return nil
}

func (c *check) keyPairs(ctx context.Context) ([]string, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	page, err := keypairs.List(s.compute, keypairs.ListOpts{}).AllPages(ctx)
	if err != nil {
		return nil, c.failure(ctx, "list key pairs", err)
	}
	all, err := keypairs.ExtractKeyPairs(page)
	if err != nil {
		return nil, c.failure(ctx, "list key pairs", err)
	}
	var names []string
	for _, pair := range all {
		names = append(names, pair.Name)
	}
	return names, nil
}

// groups asks for the security groups of the pools, where the cloud has Neutron.
func (c *check) groups(ctx context.Context) error {
	if !slices.ContainsFunc(c.cfg.Pools, func(p configs.Pool) bool { return len(p.SecurityGroups) > 0 }) {
		return nil
	}
	s, err := c.session(ctx)
	if err != nil || s.network == nil {
		return err
	}
	all, err := c.listGroups(ctx)
	if err != nil {
		return err
	}
	for _, pool := range c.cfg.Pools {
		for i, group := range pool.SecurityGroups {
			if _, problem := groupID(group, all); problem != "" {
				c.lack(problem, fmt.Sprintf("%s.security-groups[%d]", poolKey(pool), i), poolKey(pool))
			}
		}
	}
	return nil
}

// listGroups lists the security groups that we can see; none where the cloud has no Neutron.
func (p *Provider) listGroups(ctx context.Context) ([]groups.SecGroup, error) {
	s, err := p.session(ctx)
	if err != nil || s.network == nil {
		return nil, err
	}
	page, err := groups.List(s.network, groups.ListOpts{}).AllPages(ctx)
	if err != nil {
		return nil, p.failure(ctx, "list security groups", err)
	}
	all, err := groups.ExtractGroups(page)
	return all, p.failure(ctx, "list security groups", err)
}

// groupID finds a security group by id or name, or returns why there is no such one.
func groupID(name string, all []groups.SecGroup) (id, problem string) {
	var names, found []string
	for _, g := range all {
		if g.ID == name {
			return name, ""
		}
		names = append(names, g.Name)
		if g.Name == name {
			found = append(found, g.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Sprintf("the cloud has no security group %q, it has %s", name, listed(names))
	case 1:
		return found[0], ""
	}
	return "", fmt.Sprintf("%d security groups are called %q, write the id of one: %s", len(found), name, listed(found))
}

// poolZones asks for the availability zones of the pools, where the cloud tells.
func (c *check) poolZones(ctx context.Context) error {
	if !slices.ContainsFunc(c.cfg.Pools, func(p configs.Pool) bool { return len(p.AvailabilityZones) > 0 }) {
		return nil
	}
	all, err := c.Zones(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, pool := range c.cfg.Pools {
		for i, zone := range pool.AvailabilityZones {
			if !slices.Contains(all, zone) {
				c.lack(fmt.Sprintf("the cloud has no availability zone %q that takes nodes, it has %s", zone, listed(all)),
					fmt.Sprintf("%s.availability-zones[%d]", poolKey(pool), i), poolKey(pool))
			}
		}
	}
	return nil
}
