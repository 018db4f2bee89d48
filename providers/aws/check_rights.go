package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ebs"
	ebstypes "github.com/aws/aws-sdk-go-v2/service/ebs/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// trialRun is the code by which EC2 says that it would have done what it was asked to try.
const trialRun = "DryRunOperation"

// What nobody has: a request for it does nothing, and is refused as such, or for want of a right.
const (
	noInstance = "i-00000000000000000"
	noVolume   = "vol-00000000000000000"
	noSnapshot = "snap-00000000000000000"
	noImage    = "ami-00000000000000000"
	noName     = "poolkeeper-check"
)

// right is something that we have to be allowed to do, and a request that changes nothing.
type right struct {
	action string
	ask    func(context.Context) error
}

// bucket looks whether it is there, and where it should be.
func (c *check) bucket(ctx context.Context) error {
	if c.own.Bucket == "" {
		return nil
	}
	at := []string{"object-storage.bucket-name", "object-storage"}
	region, err := c.account.bucket.look(ctx)
	switch {
	case missing(err) || codeOf(err) == "NoSuchBucket":
		c.lack(fmt.Sprintf("there is no bucket %q", c.own.Bucket), at...)
	case statusOf(err) == 301 || err == nil && region != "" && region != c.cfg.Region:
		c.lack(fmt.Sprintf("the bucket %q is in another region: an import takes it from its own only", c.own.Bucket), at...)
	case isRefusal(err):
		c.lack(fmt.Sprintf("who logs in may not use the bucket %q, or it is another's", c.own.Bucket), at...)
	case err != nil:
		return c.named(ctx, "look at bucket "+c.own.Bucket, err)
	}
	return nil
}

// rights asks for each right that launches and uploads of this section need.
func (c *check) rights(ctx context.Context) error {
	all := c.nodeRights()
	if len(c.cfg.DiskImages) > 0 {
		all = append(all, c.imageRights()...)
	}
	for _, r := range all {
		err := r.ask(ctx)
		if isRefusal(err) {
			c.lack(fmt.Sprintf("who logs in may not %s: docs/aws.md has the rights that are needed", r.action), "profile-name")
			continue
		}
		if err != nil && codeOf(err) == "" || errors.Is(failure(err), providers.ErrTransient) {
			return c.named(ctx, "try "+r.action, err)
		}
	}
	return nil
}

// second is an error of an SDK's call.
func second[T any](_ T, err error) error { return err }

func (c *check) nodeRights() []right {
	api, dry := c.account.ec2, sdk.Bool(true)
	one := []string{noInstance}
	all := []right{
		{"ec2:DescribeInstances", func(ctx context.Context) error {
			return second(api.DescribeInstances(ctx, &ec2.DescribeInstancesInput{DryRun: dry}))
		}},
		{"ec2:DescribeImages", func(ctx context.Context) error {
			return second(api.DescribeImages(ctx, &ec2.DescribeImagesInput{DryRun: dry, Owners: []string{"self"}}))
		}},
		{"ec2:DescribeVolumes", func(ctx context.Context) error {
			return second(api.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{DryRun: dry}))
		}},
		{"ec2:DescribeSnapshots", func(ctx context.Context) error {
			return second(api.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{DryRun: dry, OwnerIds: []string{"self"}}))
		}},
		{"ec2:DescribeHosts", func(ctx context.Context) error {
			return second(api.DescribeHosts(ctx, &ec2.DescribeHostsInput{Filter: c.mine()}))
		}},
		{"ec2:DescribeLaunchTemplates", func(ctx context.Context) error {
			return second(api.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{DryRun: dry}))
		}},
		{"ec2:TerminateInstances", func(ctx context.Context) error {
			return second(api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{DryRun: dry, InstanceIds: one}))
		}},
		{"ec2:DeleteVolume", func(ctx context.Context) error {
			return second(api.DeleteVolume(ctx, &ec2.DeleteVolumeInput{DryRun: dry, VolumeId: sdk.String(noVolume)}))
		}},
		{"ec2:CreateTags", func(ctx context.Context) error {
			return second(api.CreateTags(ctx, &ec2.CreateTagsInput{DryRun: dry, Resources: one, Tags: []types.Tag{{Key: sdk.String(nameTag), Value: sdk.String(noName)}}}))
		}},
	}
	uses := func(is func(*configs.AWSLabel) bool) bool {
		return slices.ContainsFunc(c.cfg.Pools, func(pool configs.Pool) bool {
			return slices.ContainsFunc(pool.Labels, func(l configs.PoolLabel) bool {
				own, ok := l.Settings.(*configs.AWSLabel)
				return ok && is(own)
			})
		})
	}
	if uses(func(l *configs.AWSLabel) bool { return l.Fleet != nil }) {
		all = append(all, c.fleetRights()...)
	}
	if uses(func(l *configs.AWSLabel) bool { return l.DedicatedHost }) {
		all = append(all, right{"ec2:ReleaseHosts", func(ctx context.Context) error {
			return second(api.ReleaseHosts(ctx, &ec2.ReleaseHostsInput{HostIds: []string{"h-00000000000000000"}}))
		}})
	}
	return all
}

func (c *check) fleetRights() []right {
	api, dry, name := c.account.ec2, sdk.Bool(true), sdk.String(noName)
	return []right{
		{"ec2:CreateLaunchTemplate", func(ctx context.Context) error {
			return second(api.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
				DryRun: dry, LaunchTemplateName: name, LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: sdk.String(noImage)},
			}))
		}},
		{"ec2:DeleteLaunchTemplate", func(ctx context.Context) error {
			return second(api.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{DryRun: dry, LaunchTemplateName: name}))
		}},
		{"ec2:CreateFleet", func(ctx context.Context) error {
			return second(api.CreateFleet(ctx, &ec2.CreateFleetInput{
				DryRun: dry, Type: types.FleetTypeInstant,
				LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
					LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: name, Version: sdk.String("$Latest")},
				}},
				TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: sdk.Int32(1)},
			}))
		}},
	}
}

func (c *check) imageRights() []right {
	api, dry := c.account.ec2, sdk.Bool(true)
	all := []right{
		{"ec2:DeregisterImage", func(ctx context.Context) error {
			return second(api.DeregisterImage(ctx, &ec2.DeregisterImageInput{DryRun: dry, ImageId: sdk.String(noImage)}))
		}},
		{"ec2:DeleteSnapshot", func(ctx context.Context) error {
			return second(api.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{DryRun: dry, SnapshotId: sdk.String(noSnapshot)}))
		}},
	}
	if c.imports(configs.AWSImportSnapshot, configs.AWSImportEBSDirect) {
		all = append(all, right{"ec2:RegisterImage", func(ctx context.Context) error {
			return second(api.RegisterImage(ctx, &ec2.RegisterImageInput{
				DryRun: dry, Name: sdk.String(noName), RootDeviceName: sdk.String(rootName),
				BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: sdk.String(rootName), Ebs: &types.EbsBlockDevice{SnapshotId: sdk.String(noSnapshot)}}},
			}))
		}})
	}
	if c.imports(configs.AWSImportEBSDirect) {
		all = append(all, c.blockRights()...)
	}
	if c.own.Bucket != "" {
		all = append(all, right{"s3:ListBucketMultipartUploads", func(ctx context.Context) error {
			for _, err := range c.account.bucket.uploads(ctx, objectPrefix+noName) {
				return err
			}
			return nil
		}})
	}
	from := &types.UserBucket{S3Bucket: text(c.own.Bucket), S3Key: sdk.String(objectPrefix + noName)}
	if c.imports(configs.AWSImportSnapshot) {
		all = append(all, right{"ec2:ImportSnapshot", func(ctx context.Context) error {
			return second(api.ImportSnapshot(ctx, &ec2.ImportSnapshotInput{DryRun: dry, DiskContainer: &types.SnapshotDiskContainer{Format: text(c.cfg.ImageFormat), UserBucket: from}}))
		}}, right{"ec2:DescribeImportSnapshotTasks", func(ctx context.Context) error {
			return second(api.DescribeImportSnapshotTasks(ctx, &ec2.DescribeImportSnapshotTasksInput{DryRun: dry}))
		}})
	}
	if c.imports(configs.AWSImportImage) {
		all = append(all, right{"ec2:ImportImage", func(ctx context.Context) error {
			return second(api.ImportImage(ctx, &ec2.ImportImageInput{DryRun: dry, DiskContainers: []types.ImageDiskContainer{{Format: text(c.cfg.ImageFormat), UserBucket: from}}}))
		}}, right{"ec2:DescribeImportImageTasks", func(ctx context.Context) error {
			return second(api.DescribeImportImageTasks(ctx, &ec2.DescribeImportImageTasksInput{DryRun: dry}))
		}})
	}
	return all
}

// blockRights are those of EBS direct, which has no trial runs.
func (c *check) blockRights() []right {
	api := c.account.ebs
	return []right{
		{"ebs:StartSnapshot", func(ctx context.Context) error {
			return second(api.StartSnapshot(ctx, &ebs.StartSnapshotInput{VolumeSize: sdk.Int64(1), ParentSnapshotId: sdk.String(noSnapshot)}))
		}},
		{"ebs:CompleteSnapshot", func(ctx context.Context) error {
			return second(api.CompleteSnapshot(ctx, &ebs.CompleteSnapshotInput{
				SnapshotId: sdk.String(noSnapshot), ChangedBlocksCount: sdk.Int32(0), ChecksumAlgorithm: ebstypes.ChecksumAlgorithmChecksumAlgorithmSha256,
				ChecksumAggregationMethod: ebstypes.ChecksumAggregationMethodChecksumAggregationLinear,
			}))
		}},
	}
}

// trials has Amazon look at the instance of each label without making it.
func (c *check) trials(ctx context.Context) error {
	return c.each(func(o offer) error {
		if o.own.DedicatedHost {
			return nil // without its host it would be refused
		}
		image, err := c.trialImage(ctx, o)
		if err != nil || image == nil {
			return err
		}
		list, err := c.places(ctx, o, "")
		if err != nil || len(list) == 0 {
			return nil //nolint:nilerr // it is told already
		}
		spec := providers.NodeSpec{Pool: o.pool.Name, Label: o.label.Name, NodeID: "0000000000", Hostname: noName}
		in := c.order(o, spec, image)
		in.DryRun, in.NetworkInterfaces, in.InstanceType = sdk.Bool(true), network(o, list[0]), types.InstanceType(o.types()[0])
		if list[0].subnet == "" && list[0].zone != "" {
			in.Placement = &types.Placement{AvailabilityZone: text(list[0].zone)}
		}
		_, err = c.account.ec2.RunInstances(ctx, in)
		c.refused(o, err)
		return nil
	})
}

// trialImage is one that a label's node could boot from; nil where there is none yet, or none at all.
func (c *check) trialImage(ctx context.Context, o offer) (*types.Image, error) {
	if o.label.CloudImage != "" {
		found, err := c.image(ctx, o, "")
		if errors.Is(err, providers.ErrNotFound) || errors.Is(err, providers.ErrInvalid) {
			return nil, nil //nolint:nilnil // it is told already
		}
		return &found, err
	}
	found, err := c.newest(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: append(c.mine(), types.Filter{
		Name: sdk.String("tag:" + providers.MetaImage), Values: []string{o.label.DiskImage},
	})}, "the marks of "+o.label.DiskImage)
	if errors.Is(err, providers.ErrNotFound) {
		return nil, nil //nolint:nilnil // nothing is uploaded yet
	}
	return &found, err
}

// refused tells why Amazon would not make a label's instance. That a cloud is full is over one day, and what is named
// and not there was told already.
func (c *check) refused(o offer, err error) {
	kind := failure(err)
	switch {
	case err == nil, codeOf(err) == trialRun, errors.Is(kind, providers.ErrQuota), errors.Is(kind, providers.ErrTransient), missing(err):
	case isRefusal(err):
		c.lack("who logs in may not launch its instance: "+words(err), labelKey(o), "profile-name")
	default:
		c.lack("Amazon refuses its instance, so that each launch would fail: "+words(err), labelKey(o))
	}
}
