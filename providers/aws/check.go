package aws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

var _ providers.Checker = (*Provider)(nil)

// check collects what the configuration names and the account does not have, or refuses.
type check struct {
	*Provider

	missing []providers.Missing
	zones   []string
	subnets map[string]types.Subnet
	groups  map[string]types.SecurityGroup
	keys    map[string]bool
	offered map[string][]string // the zones that have a type of instances
}

// CheckCloud implements providers.Checker: the log-in, the region, and all that pools, labels and images name; then whether
// the account lets us do what launches and uploads do, by trial runs that change nothing.
func (p *Provider) CheckCloud(ctx context.Context) ([]providers.Missing, error) {
	c := &check{Provider: p}
	if err := c.login(ctx); err != nil || len(c.missing) > 0 {
		return c.missing, err
	}
	var failed error
	for _, part := range []func(context.Context) error{
		c.allZones, c.allSubnets, c.allGroups, c.allKeys, c.allOffers, c.pools, c.cloudImages, c.bucket, c.rights, c.trials, c.room,
	} {
		err := part(ctx)
		switch {
		case ctx.Err() != nil:
			return c.missing, context.Cause(ctx)
		case err == nil:
		case isRefusal(err):
			c.lackRight(err)
		case failed == nil || err.Error() != failed.Error():
			failed = errors.Join(failed, err)
		}
	}
	return c.missing, failed
}

// lack notes what is missing.
func (c *check) lack(message string, keys ...string) {
	c.missing = append(c.missing, providers.Missing{Keys: keys, Message: message})
}

// lackRight notes that an account does not let us do something.
func (c *check) lackRight(err error) {
	c.lack(fmt.Sprintf("who logs in lacks a right: %s; docs/aws.md has all that are needed", words(err)), "profile-name")
}

// words are those of the service.
func words(err error) string {
	if known, ok := errors.AsType[*refusal](failure(err)); ok {
		return known.text
	}
	return err.Error()
}

// isRefusal reports whether a service refused for want of a right, not of a log-in.
func isRefusal(err error) bool {
	return slices.Contains([]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Forbidden"}, codeOf(err))
}

// login asks whose log-in it is, which nobody can be refused.
func (c *check) login(ctx context.Context) error {
	_, err := c.account.whoami(ctx, &sts.GetCallerIdentityInput{})
	if noName, ok := errors.AsType[*net.DNSError](err); ok && noName.IsNotFound {
		c.lack(fmt.Sprintf("Amazon has no region %q that this host knows: %v", c.cfg.Region, noName), "region-name")
		return nil
	}
	return c.named(ctx, "ask whose log-in it is", err)
}

func (c *check) allZones(ctx context.Context) error {
	found, err := c.account.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err == nil && found.AvailabilityZones == nil {
		err = errNoList
	}
	if err != nil {
		return c.named(ctx, "list zones", err)
	}
	for i := range found.AvailabilityZones {
		c.zones = append(c.zones, sdk.ToString(found.AvailabilityZones[i].ZoneName))
	}
	return nil
}

// allOf are what all pools name, by what one names.
func (c *check) allOf(one func(*configs.AWSPool, *configs.Pool) []string) []string {
	var all []string
	for i := range c.cfg.Pools {
		if place, ok := c.cfg.Pools[i].Settings.(*configs.AWSPool); ok {
			all = append(all, one(place, &c.cfg.Pools[i])...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(one string) bool { return one == "" })
}

func (c *check) allSubnets(ctx context.Context) error {
	ids := c.allOf(func(place *configs.AWSPool, _ *configs.Pool) []string { return place.SubnetIDs })
	if len(ids) == 0 {
		return nil
	}
	found := map[string]types.Subnet{}
	pages := ec2.NewDescribeSubnetsPaginator(c.account.ec2, &ec2.DescribeSubnetsInput{Filters: by("subnet-id", ids)})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return c.named(ctx, "look up subnets", err)
		}
		for i := range page.Subnets {
			found[sdk.ToString(page.Subnets[i].SubnetId)] = page.Subnets[i]
		}
	}
	c.subnets = found
	return nil
}

func (c *check) allGroups(ctx context.Context) error {
	ids := c.allOf(func(place *configs.AWSPool, _ *configs.Pool) []string { return place.SecurityGroupIDs })
	if len(ids) == 0 {
		return nil
	}
	found := map[string]types.SecurityGroup{}
	pages := ec2.NewDescribeSecurityGroupsPaginator(c.account.ec2, &ec2.DescribeSecurityGroupsInput{Filters: by("group-id", ids)})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return c.named(ctx, "look up security groups", err)
		}
		for i := range page.SecurityGroups {
			found[sdk.ToString(page.SecurityGroups[i].GroupId)] = page.SecurityGroups[i]
		}
	}
	c.groups = found
	return nil
}

func (c *check) allKeys(ctx context.Context) error {
	found, err := c.account.ec2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{})
	if err == nil && found.KeyPairs == nil {
		err = errNoList
	}
	if err != nil {
		return c.named(ctx, "list key pairs", err)
	}
	c.keys = map[string]bool{}
	for i := range found.KeyPairs {
		c.keys[sdk.ToString(found.KeyPairs[i].KeyName)] = true
	}
	return nil
}

// allOffers asks which zones have the types of instances that labels name.
func (c *check) allOffers(ctx context.Context) error {
	names := c.allOf(func(_ *configs.AWSPool, pool *configs.Pool) []string {
		var kinds []string
		for i := range pool.Labels {
			if own, ok := pool.Labels[i].Settings.(*configs.AWSLabel); ok {
				kinds = append(kinds, offer{own: own}.types()...)
			}
		}
		return kinds
	})
	found := map[string][]string{}
	for some := range slices.Chunk(names, mostValues) {
		pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.account.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: types.LocationTypeAvailabilityZone, Filters: by("instance-type", some),
		})
		for page, err := range pagesOf(ctx, pages) {
			if err != nil {
				return c.named(ctx, "list what zones offer", err)
			}
			for _, o := range page.InstanceTypeOfferings {
				found[string(o.InstanceType)] = append(found[string(o.InstanceType)], sdk.ToString(o.Location))
			}
		}
	}
	c.offered = found
	return nil
}

func by(name string, values []string) []types.Filter {
	return []types.Filter{{Name: sdk.String(name), Values: values}}
}

// has is what there is, for people: not too much of it.
func has(names []string) string {
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
