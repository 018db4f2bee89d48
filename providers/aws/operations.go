package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
)

// call is one operation of EC2.
type call[In, Out any] func(context.Context, *In, ...func(*ec2.Options)) (*Out, error)

// quotaAPI is the one operation of Service Quotas that we ask for, for the same reason as ec2API.
type quotaAPI func(context.Context, *servicequotas.ListServiceQuotasInput, ...func(*servicequotas.Options)) (*servicequotas.ListServiceQuotasOutput, error)

// ListServiceQuotas implements servicequotas.ListServiceQuotasAPIClient.
func (q quotaAPI) ListServiceQuotas(ctx context.Context, in *servicequotas.ListServiceQuotasInput, options ...func(*servicequotas.Options)) (*servicequotas.ListServiceQuotasOutput, error) {
	return q(ctx, in, options...)
}

// ec2API has the operations of EC2 that we ask for, and no more: the client has 700, all of which
// the linker keeps as soon as an interface, or a field of what is in one, is of its type.
type ec2API struct {
	AllocateHosts             call[ec2.AllocateHostsInput, ec2.AllocateHostsOutput]
	CancelImportTask          call[ec2.CancelImportTaskInput, ec2.CancelImportTaskOutput]
	CreateFleet               call[ec2.CreateFleetInput, ec2.CreateFleetOutput]
	CreateLaunchTemplate      call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput]
	CreateTags                call[ec2.CreateTagsInput, ec2.CreateTagsOutput]
	DeleteLaunchTemplate      call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput]
	DeleteSnapshot            call[ec2.DeleteSnapshotInput, ec2.DeleteSnapshotOutput]
	DeleteVolume              call[ec2.DeleteVolumeInput, ec2.DeleteVolumeOutput]
	DeregisterImage           call[ec2.DeregisterImageInput, ec2.DeregisterImageOutput]
	DescribeAvailabilityZones call[ec2.DescribeAvailabilityZonesInput, ec2.DescribeAvailabilityZonesOutput]
	DescribeInstanceTypes     call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	DescribeKeyPairs          call[ec2.DescribeKeyPairsInput, ec2.DescribeKeyPairsOutput]
	GetConsoleOutput          call[ec2.GetConsoleOutputInput, ec2.GetConsoleOutputOutput]
	ImportImage               call[ec2.ImportImageInput, ec2.ImportImageOutput]
	ImportSnapshot            call[ec2.ImportSnapshotInput, ec2.ImportSnapshotOutput]
	RegisterImage             call[ec2.RegisterImageInput, ec2.RegisterImageOutput]
	ReleaseHosts              call[ec2.ReleaseHostsInput, ec2.ReleaseHostsOutput]
	RunInstances              call[ec2.RunInstancesInput, ec2.RunInstancesOutput]
	TerminateInstances        call[ec2.TerminateInstancesInput, ec2.TerminateInstancesOutput]

	// Those whose answers have pages are methods below, as the SDK wants them.
	describeHosts                 call[ec2.DescribeHostsInput, ec2.DescribeHostsOutput]
	describeImages                call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	describeImportImageTasks      call[ec2.DescribeImportImageTasksInput, ec2.DescribeImportImageTasksOutput]
	describeImportSnapshotTasks   call[ec2.DescribeImportSnapshotTasksInput, ec2.DescribeImportSnapshotTasksOutput]
	describeInstanceTypeOfferings call[ec2.DescribeInstanceTypeOfferingsInput, ec2.DescribeInstanceTypeOfferingsOutput]
	describeInstances             call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	describeLaunchTemplates       call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput]
	describeSecurityGroups        call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput]
	describeSnapshots             call[ec2.DescribeSnapshotsInput, ec2.DescribeSnapshotsOutput]
	describeSubnets               call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	describeVolumes               call[ec2.DescribeVolumesInput, ec2.DescribeVolumesOutput]
}

func newEC2(c *ec2.Client) *ec2API {
	return &ec2API{
		AllocateHosts:                 c.AllocateHosts,
		CancelImportTask:              c.CancelImportTask,
		CreateFleet:                   c.CreateFleet,
		CreateLaunchTemplate:          c.CreateLaunchTemplate,
		CreateTags:                    c.CreateTags,
		DeleteLaunchTemplate:          c.DeleteLaunchTemplate,
		DeleteSnapshot:                c.DeleteSnapshot,
		DeleteVolume:                  c.DeleteVolume,
		DeregisterImage:               c.DeregisterImage,
		DescribeAvailabilityZones:     c.DescribeAvailabilityZones,
		DescribeInstanceTypes:         c.DescribeInstanceTypes,
		DescribeKeyPairs:              c.DescribeKeyPairs,
		GetConsoleOutput:              c.GetConsoleOutput,
		ImportImage:                   c.ImportImage,
		ImportSnapshot:                c.ImportSnapshot,
		RegisterImage:                 c.RegisterImage,
		ReleaseHosts:                  c.ReleaseHosts,
		RunInstances:                  c.RunInstances,
		TerminateInstances:            c.TerminateInstances,
		describeHosts:                 c.DescribeHosts,
		describeImages:                c.DescribeImages,
		describeImportImageTasks:      c.DescribeImportImageTasks,
		describeImportSnapshotTasks:   c.DescribeImportSnapshotTasks,
		describeInstanceTypeOfferings: c.DescribeInstanceTypeOfferings,
		describeInstances:             c.DescribeInstances,
		describeLaunchTemplates:       c.DescribeLaunchTemplates,
		describeSecurityGroups:        c.DescribeSecurityGroups,
		describeSnapshots:             c.DescribeSnapshots,
		describeSubnets:               c.DescribeSubnets,
		describeVolumes:               c.DescribeVolumes,
	}
}

// DescribeHosts is one page.
func (a *ec2API) DescribeHosts(ctx context.Context, in *ec2.DescribeHostsInput, o ...func(*ec2.Options)) (*ec2.DescribeHostsOutput, error) {
	return a.describeHosts(ctx, in, o...)
}

// DescribeImages is one page.
func (a *ec2API) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, o ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return a.describeImages(ctx, in, o...)
}

// DescribeImportImageTasks is one page.
func (a *ec2API) DescribeImportImageTasks(ctx context.Context, in *ec2.DescribeImportImageTasksInput, o ...func(*ec2.Options)) (*ec2.DescribeImportImageTasksOutput, error) {
	return a.describeImportImageTasks(ctx, in, o...)
}

// DescribeImportSnapshotTasks is one page.
func (a *ec2API) DescribeImportSnapshotTasks(ctx context.Context, in *ec2.DescribeImportSnapshotTasksInput, o ...func(*ec2.Options)) (*ec2.DescribeImportSnapshotTasksOutput, error) {
	return a.describeImportSnapshotTasks(ctx, in, o...)
}

// DescribeInstanceTypeOfferings is one page.
func (a *ec2API) DescribeInstanceTypeOfferings(ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, o ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return a.describeInstanceTypeOfferings(ctx, in, o...)
}

// DescribeInstances is one page.
func (a *ec2API) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return a.describeInstances(ctx, in, o...)
}

// DescribeLaunchTemplates is one page.
func (a *ec2API) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, o ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return a.describeLaunchTemplates(ctx, in, o...)
}

// DescribeSecurityGroups is one page.
func (a *ec2API) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, o ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return a.describeSecurityGroups(ctx, in, o...)
}

// DescribeSnapshots is one page.
func (a *ec2API) DescribeSnapshots(ctx context.Context, in *ec2.DescribeSnapshotsInput, o ...func(*ec2.Options)) (*ec2.DescribeSnapshotsOutput, error) {
	return a.describeSnapshots(ctx, in, o...)
}

// DescribeSubnets is one page.
func (a *ec2API) DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, o ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return a.describeSubnets(ctx, in, o...)
}

// DescribeVolumes is one page.
func (a *ec2API) DescribeVolumes(ctx context.Context, in *ec2.DescribeVolumesInput, o ...func(*ec2.Options)) (*ec2.DescribeVolumesOutput, error) {
	return a.describeVolumes(ctx, in, o...)
}
