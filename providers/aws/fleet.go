package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// templatePrefix begins the names of our launch templates: a fleet takes its order from one.
const templatePrefix = "poolkeeper-"

// templateTag tells a template's content, so that one of before is known.
const templateTag = "poolkeeper_template"

// fleet has Amazon choose type and zone of an instance. A launch template that was made a moment
// ago may be unknown yet; one that was deleted is made anew.
func (m *making) fleet(ctx context.Context, list []place, spot bool) (string, error) {
	for start := clock.Now(ctx); ; {
		id, err := m.tryFleet(ctx, list, spot)
		waited := clock.Now(ctx).Sub(start)
		if !strings.HasPrefix(codeOf(err), "InvalidLaunchTemplate") || waited > m.p.fresh.settle {
			return id, err
		}
		m.p.templates.forget()
		if err := m.p.sleep(ctx, waited); err != nil {
			return "", err
		}
	}
}

func (m *making) tryFleet(ctx context.Context, list []place, spot bool) (string, error) {
	template, err := m.template(ctx, list)
	if err != nil {
		return "", err
	}
	own := m.offer.own.Fleet
	var overrides []types.FleetLaunchTemplateOverridesRequest
	for _, kind := range own.InstanceTypes {
		for _, at := range list {
			one := types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(kind)}
			if len(list) > 1 || at.subnet == "" {
				if one.SubnetId = text(at.subnet); at.subnet == "" {
					one.AvailabilityZone = text(at.zone)
				}
			}
			if own.Strategy == "prioritized" {
				one.Priority = sdk.Float64(float64(len(overrides)))
			}
			overrides = append(overrides, one)
		}
	}
	marks := m.p.nodeTags(m.offer, m.spec)
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: text(template), Version: sdk.String("$Latest")},
			Overrides:                   overrides,
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: sdk.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: marks}, {ResourceType: types.ResourceTypeVolume, Tags: marks},
		},
	}
	if spot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: spotStrategy(own.Strategy)}
	} else {
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: onDemandStrategy(own.Strategy)}
	}
	return m.createFleet(ctx, in, template, spot)
}

func (m *making) createFleet(ctx context.Context, in *ec2.CreateFleetInput, template string, spot bool) (string, error) {
	for range 10 {
		in.ClientToken = sdk.String(m.token("fleet", template, strconv.FormatBool(spot)))
		if err := m.ask(ctx); err != nil {
			return "", err
		}
		made, err := m.p.account.ec2.CreateFleet(ctx, in)
		if m.isSpent(err) {
			continue
		}
		if err != nil {
			return "", m.refused(ctx, err)
		}
		for _, i := range made.Instances {
			for _, id := range i.InstanceIds {
				if m.p.fresh.isGone(id) {
					continue
				}
				now, err := m.p.one(ctx, id)
				if errors.Is(err, providers.ErrNotFound) || err == nil && !isLeaving(&now) {
					m.p.fresh.add(types.Instance{InstanceId: sdk.String(id), Tags: m.p.nodeTags(m.offer, m.spec), LaunchTime: sdk.Time(clock.Now(ctx))}, clock.Now(ctx))
					return id, nil
				}
				if err != nil {
					return "", err
				}
			}
		}
		if len(made.Instances) == 0 {
			m.spend() // the token would give this answer again, whatever there is by then
			return "", m.fleetRefused(made.Errors)
		}
		m.round++
	}
	return "", fmt.Errorf("%w: each token of the launch is used up", providers.ErrTransient)
}

// fleetRefused judges why a fleet has no instance: a limit counts only where no other type failed
// for another reason.
func (m *making) fleetRefused(all []types.CreateFleetError) error {
	var first, quota *refusal
	for _, e := range all {
		code := sdk.ToString(e.ErrorCode)
		one := &refusal{kind: meaning(code, 0), code: code, text: said(code + ": " + sdk.ToString(e.ErrorMessage))}
		if isMissing(code) {
			one.kind = providers.ErrInvalid
		}
		if code == "InvalidAMIID.NotFound" {
			one.kind = providers.ErrNotFound
		}
		if first == nil {
			first = one
		}
		if quota == nil && errors.Is(one, providers.ErrQuota) {
			quota = one
		}
	}
	switch {
	case quota != nil:
		return quota
	case first != nil:
		return first
	}
	return &refusal{kind: providers.ErrQuota, code: "InsufficientInstanceCapacity", text: "the fleet has no instance, and Amazon does not say why"}
}

func spotStrategy(name string) types.SpotAllocationStrategy {
	if name == "prioritized" {
		return types.SpotAllocationStrategyCapacityOptimizedPrioritized
	}
	return types.SpotAllocationStrategy(name)
}

func onDemandStrategy(name string) types.FleetOnDemandAllocationStrategy {
	if name == "prioritized" {
		return types.FleetOnDemandAllocationStrategyPrioritized
	}
	return types.FleetOnDemandAllocationStrategyLowestPrice // the others are of spot only
}

// template finds or makes the launch template of a label.
func (m *making) template(ctx context.Context, list []place) (string, error) {
	data := m.templateData(list)
	content, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("describe launch template: %w", err)
	}
	sum := token(m.p.cfg.Name, m.spec.Metadata[providers.MetaSite], string(content))
	name := templatePrefix + sum[:40]
	return m.p.templates.get(ctx, name, imageAge, func(ctx context.Context) (string, error) {
		ours := map[string]string{
			providers.MetaProvider: m.p.cfg.Name, templateTag: sum, providers.MetaSite: m.spec.Metadata[providers.MetaSite],
		}
		made, err := m.p.account.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: sdk.String(name), LaunchTemplateData: data,
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags(name, nil, ours)}},
		})
		if err == nil && made.LaunchTemplate != nil {
			return idOf("a launch template", made.LaunchTemplate.LaunchTemplateId)
		}
		if err != nil && codeOf(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
			return "", configured(m.p.named(ctx, "create launch template", err))
		}
		found, err := m.p.account.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
		if err != nil {
			return "", m.p.named(ctx, "look up launch template", err)
		}
		there := theOne(found.LaunchTemplates, name, func(t *types.LaunchTemplate) *string { return t.LaunchTemplateName })
		if there == nil {
			return "", fmt.Errorf("look up launch template %s: %w", name, providers.ErrTransient)
		}
		return idOf("a launch template", there.LaunchTemplateId)
	})
}

// templateData is the order of a fleet, without what is a node's own.
func (m *making) templateData(list []place) *types.RequestLaunchTemplateData {
	in := m.p.order(m.offer, m.spec, m.image)
	at := place{}
	if len(list) == 1 {
		at.subnet = list[0].subnet
	}
	data := &types.RequestLaunchTemplateData{ImageId: in.ImageId, KeyName: in.KeyName, UserData: in.UserData, EbsOptimized: in.EbsOptimized}
	for _, n := range network(m.offer, at) {
		data.NetworkInterfaces = append(data.NetworkInterfaces, types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeviceIndex: n.DeviceIndex, SubnetId: n.SubnetId, Groups: n.Groups, AssociatePublicIpAddress: n.AssociatePublicIpAddress,
			DeleteOnTermination: n.DeleteOnTermination, Ipv6AddressCount: n.Ipv6AddressCount,
		})
	}
	for _, b := range in.BlockDeviceMappings {
		data.BlockDeviceMappings = append(data.BlockDeviceMappings, types.LaunchTemplateBlockDeviceMappingRequest{
			DeviceName: b.DeviceName, Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
				DeleteOnTermination: b.Ebs.DeleteOnTermination, VolumeType: b.Ebs.VolumeType, VolumeSize: b.Ebs.VolumeSize,
				Iops: b.Ebs.Iops, Throughput: b.Ebs.Throughput,
			},
		})
	}
	if p := in.IamInstanceProfile; p != nil {
		data.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: p.Name, Arn: p.Arn}
	}
	if o := in.MetadataOptions; o != nil {
		data.MetadataOptions = &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpTokens: types.LaunchTemplateHttpTokensState(o.HttpTokens), HttpEndpoint: types.LaunchTemplateInstanceMetadataEndpointState(o.HttpEndpoint),
		}
	}
	return data
}
