package aws

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// How long what is looked up is believed.
const (
	imageAge  = time.Minute
	typeAge   = time.Hour
	subnetAge = 10 * time.Minute
	quotaAge  = 5 * time.Minute
	// lackAge is how long a zone without capacity is asked last.
	lackAge = 5 * time.Minute
)

// place is where an instance is made; what is "" is left to Amazon.
type place struct{ subnet, zone string }

// places are those that a label's node may be made in, in the order of trying.
func (p *Provider) places(ctx context.Context, o offer, zone string) ([]place, error) {
	zones := o.pool.AvailabilityZones
	if zone != "" {
		zones = []string{zone}
	}
	if len(o.place.SubnetIDs) == 0 {
		if len(zones) == 0 {
			return []place{{}}, nil // Amazon chooses; the others are tried where that fails
		}
		list := make([]place, len(zones))
		for i, z := range zones {
			list[i] = place{zone: z}
		}
		return list, nil
	}
	if len(o.place.SubnetIDs) == 1 && len(zones) == 0 {
		return []place{{subnet: o.place.SubnetIDs[0]}}, nil
	}
	known, err := p.nets.get(ctx, strings.Join(o.place.SubnetIDs, " "), subnetAge, func(ctx context.Context) ([]types.Subnet, error) {
		found, err := p.account.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: o.place.SubnetIDs})
		if err == nil && found.Subnets == nil {
			err = errNoList
		}
		if err != nil {
			return nil, configured(p.named(ctx, "look up subnets", err))
		}
		return found.Subnets, nil
	})
	if err != nil {
		return nil, err
	}
	var list []place
	for _, id := range o.place.SubnetIDs {
		for i := range known {
			if sdk.ToString(known[i].SubnetId) != id {
				continue
			}
			if in := sdk.ToString(known[i].AvailabilityZone); len(zones) == 0 || slices.Contains(zones, in) {
				list = append(list, place{subnet: id, zone: in})
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: pool %s has no subnet in the zones %s", providers.ErrInvalid, o.pool.Name, strings.Join(zones, ", "))
	}
	return list, nil
}

// otherZones are those that are left when Amazon was to choose, and chose one without capacity.
func (p *Provider) otherZones(ctx context.Context) ([]place, error) {
	names, err := p.zones.get(ctx, "", typeAge, func(ctx context.Context) ([]string, error) {
		found, err := p.account.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
		if err == nil && found.AvailabilityZones == nil {
			err = errNoList
		}
		if err != nil {
			return nil, p.named(ctx, "list zones", err)
		}
		var names []string
		for i := range found.AvailabilityZones {
			if found.AvailabilityZones[i].State == types.AvailabilityZoneStateAvailable {
				names = append(names, sdk.ToString(found.AvailabilityZones[i].ZoneName))
			}
		}
		return names, nil
	})
	list := make([]place, len(names))
	for i, z := range names {
		list[i] = place{zone: z}
	}
	return list, err
}

// configured has what a configuration names and an account does not have be a mistake of the
// configuration: only of images it means that another is to be taken.
func configured(err error) error {
	if err == nil || !missing(err) {
		return err
	}
	return &refusal{kind: providers.ErrInvalid, code: codeOf(err), text: err.Error()}
}

// lacking are the zones that had no such machine a moment ago. The zero value is ready.
type lacking struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (l *lacking) note(kind string, at place, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[string]time.Time{}
	}
	l.since[kind+" "+at.zone+" "+at.subnet] = now
}

// last sorts places that lacked a moment ago behind the others.
func (l *lacking) last(kind string, list []place, now time.Time) []place {
	l.mu.Lock()
	defer l.mu.Unlock()
	lacks := func(at place) int {
		if t, ok := l.since[kind+" "+at.zone+" "+at.subnet]; ok && now.Sub(t) < lackAge {
			return 1
		}
		return 0
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b place) int { return lacks(a) - lacks(b) })
	return sorted
}

// image is what a node boots from.
func (p *Provider) image(ctx context.Context, o offer, uploaded string) (types.Image, error) {
	if o.label.CloudImage == "" {
		if uploaded == "" {
			return types.Image{}, fmt.Errorf("%w: the label %s boots from an uploaded image, and none is given", providers.ErrInvalid, o.label.Name)
		}
		return p.imageByID(ctx, uploaded)
	}
	named, ok := p.cfg.CloudImage(o.label.CloudImage)
	if !ok {
		return types.Image{}, fmt.Errorf("%w: the provider's cloud-images has no %q", providers.ErrInvalid, o.label.CloudImage)
	}
	if named.ImageID != "" {
		return p.imageByID(ctx, named.ImageID)
	}
	own, _ := named.Settings.(*configs.AWSCloudImage)
	if own == nil {
		return types.Image{}, fmt.Errorf("%w: the cloud image %q has no image-filters", providers.ErrInvalid, named.Name)
	}
	return p.images.get(ctx, "newest "+named.Name, imageAge, func(ctx context.Context) (types.Image, error) {
		in := &ec2.DescribeImagesInput{}
		for _, f := range own.Filters {
			in.Filters = append(in.Filters, types.Filter{Name: sdk.String(f.Name), Values: f.Values})
		}
		return p.newest(ctx, in, "the image-filters of "+named.Name)
	})
}

func (p *Provider) imageByID(ctx context.Context, id string) (types.Image, error) {
	if !imageID.MatchString(id) {
		return types.Image{}, fmt.Errorf("%w: no image is called %q", providers.ErrNotFound, id)
	}
	return p.images.get(ctx, id, imageAge, func(ctx context.Context) (types.Image, error) {
		return p.newest(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}}, "the id "+id)
	})
}

// newest finds the image that was made last, of those that can be used.
func (p *Provider) newest(ctx context.Context, in *ec2.DescribeImagesInput, by string) (types.Image, error) {
	var best types.Image
	pages := ec2.NewDescribeImagesPaginator(p.account.ec2, in)
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return best, p.named(ctx, "look up image", err)
		}
		for i := range page.Images {
			one := &page.Images[i]
			if len(in.ImageIds) > 0 && !slices.Contains(in.ImageIds, sdk.ToString(one.ImageId)) || one.State != types.ImageStateAvailable && one.State != "" {
				continue
			}
			if best.ImageId == nil || sdk.ToString(one.CreationDate) > sdk.ToString(best.CreationDate) {
				best = *one
			}
		}
	}
	if best.ImageId == nil {
		return best, fmt.Errorf("provider %s: look up image: %w: nothing is found by %s", p.cfg.Name, providers.ErrNotFound, by)
	}
	return best, nil
}

// order is what RunInstances is asked for, but where and under which token.
func (p *Provider) order(o offer, spec providers.NodeSpec, image *types.Image) *ec2.RunInstancesInput {
	marks := p.nodeTags(o, spec)
	in := &ec2.RunInstancesInput{
		MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ImageId: image.ImageId, KeyName: text(o.label.KeyName),
		InstanceType: types.InstanceType(o.own.InstanceType),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: marks}, {ResourceType: types.ResourceTypeVolume, Tags: marks},
		},
		BlockDeviceMappings: rootDevice(o.own, image),
	}
	if o.own.EBSOptimized {
		in.EbsOptimized = sdk.Bool(true)
	}
	if o.label.UserData != "" {
		in.UserData = sdk.String(base64.StdEncoding.EncodeToString([]byte(o.label.UserData)))
	}
	if o.own.ProfileName != "" || o.own.ProfileARN != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: text(o.own.ProfileName), Arn: text(o.own.ProfileARN)}
	}
	if o.own.IMDSv2 != "" {
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{
			HttpTokens: types.HttpTokensState(o.own.IMDSv2), HttpEndpoint: types.InstanceMetadataEndpointStateEnabled,
		}
	}
	return in
}

// network is the interface of an instance.
func network(o offer, at place) []types.InstanceNetworkInterfaceSpecification {
	one := types.InstanceNetworkInterfaceSpecification{
		DeviceIndex: sdk.Int32(0), SubnetId: text(at.subnet), Groups: o.place.SecurityGroupIDs,
		AssociatePublicIpAddress: sdk.Bool(o.place.PublicIPv4), DeleteOnTermination: sdk.Bool(true),
	}
	if o.place.PublicIPv6 {
		one.Ipv6AddressCount = sdk.Int32(1)
	}
	return []types.InstanceNetworkInterfaceSpecification{one}
}

// rootDevice is the volume that an instance boots from, as the label wants it. It goes with the
// instance.
func rootDevice(own *configs.AWSLabel, image *types.Image) []types.BlockDeviceMapping {
	if sdk.ToString(image.RootDeviceName) == "" || image.RootDeviceType == types.DeviceTypeInstanceStore {
		return nil
	}
	return []types.BlockDeviceMapping{{DeviceName: image.RootDeviceName, Ebs: &types.EbsBlockDevice{
		DeleteOnTermination: sdk.Bool(true), VolumeType: types.VolumeType(own.VolumeType),
		VolumeSize: amount(own.VolumeSize), Iops: amount(own.IOPS), Throughput: amount(own.Throughput),
	}}}
}

// text and amount are as the SDK wants them: what is not given is nil.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func amount(n int) *int32 {
	if n <= 0 {
		return nil
	}
	return sdk.Int32(int32(min(n, math.MaxInt32))) //nolint:gosec // bounded
}

// sleep waits between two looks.
func (p *Provider) sleep(ctx context.Context, waited time.Duration) error {
	if err := clock.Sleep(ctx, max(p.poll, min(waited/20, 10*time.Second))); err != nil {
		return context.Cause(ctx)
	}
	return nil
}
