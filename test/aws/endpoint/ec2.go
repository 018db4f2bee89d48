package endpoint

import (
	"maps"
	"slices"

	"poolkeeper/test/aws/model"
)

// ec2Handlers are the operations of EC2.
var ec2Handlers = map[string]handler{
	"RunInstances": (*call).runInstances, "TerminateInstances": (*call).terminateInstances,
	"DescribeInstances": (*call).describeInstances, "DescribeInstanceStatus": (*call).describeInstanceStatus,
	"GetConsoleOutput": (*call).getConsoleOutput, "CreateFleet": (*call).createFleet,
	"CreateLaunchTemplate": (*call).createLaunchTemplate, "DeleteLaunchTemplate": (*call).deleteLaunchTemplate,
	"DescribeLaunchTemplates": (*call).describeLaunchTemplates, "DescribeSpotInstanceRequests": describe("spot-instances-request"),
	"DescribeImages": (*call).describeImages, "RegisterImage": (*call).registerImage, "DeregisterImage": (*call).deregisterImage,
	"ImportSnapshot": (*call).importSnapshot, "DescribeImportSnapshotTasks": describe("import-snapshot-task"),
	"ImportImage": (*call).importImage, "DescribeImportImageTasks": describe("import-image-task"), "CancelImportTask": (*call).cancelImportTask,
	"DescribeSnapshots": (*call).describeSnapshots, "DeleteSnapshot": (*call).deleteSnapshot,
	"DescribeVolumes": describe("volume"), "DeleteVolume": (*call).deleteVolume,
	"CreateTags": (*call).createTags, "DeleteTags": (*call).deleteTags, "DescribeTags": (*call).describeTags,
	"DescribeSubnets": describe("subnet"), "DescribeSecurityGroups": describe("security-group"), "DescribeKeyPairs": describe("key-pair"),
	"DescribeInstanceTypes": describe("instance-type"), "DescribeInstanceTypeOfferings": (*call).describeOfferings,
	"DescribeAvailabilityZones": (*call).describeZones, "DescribeRegions": (*call).describeRegions,
	"AllocateHosts": (*call).allocateHosts, "ReleaseHosts": (*call).releaseHosts, "DescribeHosts": describe("host"),
	"GetEbsEncryptionByDefault": func(c *call) (Doc, error) { return Doc{"EbsEncryptionByDefault": c.w.encrypt}, nil },
}

// continues says whether the model lets a list of this operation go on in another answer.
func (c *call) continues() bool {
	service, err := model.Load(c.service)
	if err != nil {
		return false
	}
	_, yes := service.Shapes[service.Operations[c.op].Output.Shape].Members["NextToken"]
	return yes
}

func (c *call) createTags() (Doc, error) {
	tags, err := tagsOf(c.in.Docs("Tags"))
	if err != nil {
		return nil, err
	}
	things, err := c.resources()
	if err != nil {
		return nil, err
	}
	for _, t := range things {
		all := maps.Clone(t.Tags)
		maps.Copy(all, tags)
		if len(all) > 50 {
			return nil, fault("TagLimitExceeded", "%s has too many tags", t.ID)
		}
		t.Tags = all
	}
	return nil, nil
}

func (c *call) deleteTags() (Doc, error) {
	things, err := c.resources()
	if err != nil {
		return nil, err
	}
	for _, t := range things {
		for _, tag := range c.in.Docs("Tags") {
			if value, there := t.Tags[tag.Str("Key")]; there && (!tag.Has("Value") || tag.Str("Value") == value) {
				delete(t.Tags, tag.Str("Key"))
			}
		}
	}
	return nil, nil
}

// resources are the things that a request for tags names; whoever just made one may not find it yet.
func (c *call) resources() ([]*Thing, error) {
	var things []*Thing
	for _, id := range c.in.Strs("Resources") {
		t := c.w.things[id]
		if t == nil {
			return nil, fault("InvalidID", "The ID '%s' is not valid", id)
		}
		if c.get(t.Kind, id) == nil {
			return nil, c.notFound(t.Kind, id)
		}
		things = append(things, t)
	}
	return things, nil
}

func (c *call) describeTags() (Doc, error) {
	var docs []Doc
	for _, t := range c.w.order {
		if !c.listed(t) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.Tags)) {
			entry := &Thing{Doc: Doc{"resource-id": t.ID, "resource-type": t.Kind, "key": name, "value": t.Tags[name]}}
			own := kind{filters: map[string]string{"resource-id": "resource-id", "resource-type": "resource-type", "key": "key", "value": "value"}}
			if slices.ContainsFunc(c.in.Docs("Filters"), func(f Doc) bool { return !matches(entry, own, f) }) {
				continue
			}
			docs = append(docs, Doc{"ResourceId": t.ID, "ResourceType": t.Kind, "Key": name, "Value": t.Tags[name]})
		}
	}
	return c.page("Tags", docs)
}

func (c *call) describeZones() (Doc, error) {
	asked := c.in.Strs("ZoneNames")
	var docs []Doc
	for i, zone := range c.e.Zones {
		if len(asked) == 0 || slices.Contains(asked, zone) {
			docs = append(docs, Doc{
				"ZoneName": zone, "State": "available", "RegionName": c.e.Region, "ZoneId": "euc1-az" + string(rune('1'+i)),
				"ZoneType": "availability-zone", "OptInStatus": "opt-in-not-required", "GroupName": c.e.Region,
			})
		}
	}
	if len(docs) < len(asked) {
		return nil, fault("InvalidParameterValue", "Invalid availability zones: %v", asked)
	}
	return Doc{"AvailabilityZones": docs}, nil
}

func (c *call) describeRegions() (Doc, error) {
	return Doc{"Regions": []Doc{{
		"RegionName": c.e.Region, "Endpoint": "ec2." + c.e.Region + ".amazonaws.com", "OptInStatus": "opt-in-not-required",
	}}}, nil
}

func (c *call) describeOfferings() (Doc, error) {
	where := c.in.Str("LocationType")
	if where == "" {
		where = "region"
	}
	places := []string{c.e.Region}
	if where == "availability-zone" {
		places = c.e.Zones
	}
	var docs []Doc
	for _, place := range places {
		for _, t := range c.w.of("instance-type") {
			offer := &Thing{Doc: Doc{"location": place, "instance-type": t.ID}}
			own := kind{filters: map[string]string{"location": "location", "instance-type": "instance-type"}}
			if !slices.ContainsFunc(c.in.Docs("Filters"), func(f Doc) bool { return !matches(offer, own, f) }) {
				docs = append(docs, Doc{"InstanceType": t.ID, "LocationType": where, "Location": place})
			}
		}
	}
	return c.page("InstanceTypeOfferings", docs)
}
