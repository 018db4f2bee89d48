package endpoint

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// kind is how things of one kind are called, asked for and filtered.
type kind struct {
	id       string // the member that holds its ID
	word     string // in messages
	notFound string
	ids      string // the member of a request that names some
	list     string // the member of the answer
	// filters are those that we have, and where in the document the value is.
	filters map[string]string
}

var kinds = map[string]kind{
	"instance": {
		id: "InstanceId", word: "instance", notFound: "InvalidInstanceID.NotFound", ids: "InstanceIds", list: "Reservations",
		filters: map[string]string{
			"instance-id": "InstanceId", "instance-state-name": "State.Name", "image-id": "ImageId", "instance-type": "InstanceType",
			"availability-zone": "Placement.AvailabilityZone", "subnet-id": "SubnetId", "vpc-id": "VpcId", "key-name": "KeyName",
			"client-token": "ClientToken", "host-id": "Placement.HostId", "instance-lifecycle": "InstanceLifecycle", "private-ip-address": "PrivateIpAddress",
			"spot-instance-request-id": "SpotInstanceRequestId",
		},
	},
	"image": {
		id: "ImageId", word: "image", notFound: "InvalidAMIID.NotFound", ids: "ImageIds", list: "Images",
		filters: map[string]string{
			"image-id": "ImageId", "name": "Name", "architecture": "Architecture", "state": "State", "owner-id": "OwnerId", "owner-alias": "ImageOwnerAlias",
			"virtualization-type": "VirtualizationType", "root-device-type": "RootDeviceType", "description": "Description", "ena-support": "EnaSupport",
			"image-type": "ImageType", "is-public": "Public", "hypervisor": "Hypervisor", "creation-date": "CreationDate",
			"block-device-mapping.snapshot-id": "BlockDeviceMappings.Ebs.SnapshotId", "block-device-mapping.device-name": "BlockDeviceMappings.DeviceName",
		},
	},
	"snapshot": {
		id: "SnapshotId", word: "snapshot", notFound: "InvalidSnapshot.NotFound", ids: "SnapshotIds", list: "Snapshots",
		filters: map[string]string{
			"snapshot-id": "SnapshotId", "status": "State", "owner-id": "OwnerId", "description": "Description", "encrypted": "Encrypted",
			"volume-id": "VolumeId", "volume-size": "VolumeSize",
		},
	},
	"volume": {
		id: "VolumeId", word: "volume", notFound: "InvalidVolume.NotFound", ids: "VolumeIds", list: "Volumes",
		filters: map[string]string{
			"volume-id": "VolumeId", "status": "State", "availability-zone": "AvailabilityZone", "volume-type": "VolumeType", "size": "Size",
			"snapshot-id": "SnapshotId", "attachment.instance-id": "Attachments.InstanceId", "encrypted": "Encrypted",
		},
	},
	"subnet": {
		id: "SubnetId", word: "subnet", notFound: "InvalidSubnetID.NotFound", ids: "SubnetIds", list: "Subnets",
		filters: map[string]string{"subnet-id": "SubnetId", "vpc-id": "VpcId", "availability-zone": "AvailabilityZone", "default-for-az": "DefaultForAz", "state": "State"},
	},
	"security-group": {
		id: "GroupId", word: "security group", notFound: "InvalidGroup.NotFound", ids: "GroupIds", list: "SecurityGroups",
		filters: map[string]string{"group-id": "GroupId", "group-name": "GroupName", "vpc-id": "VpcId"},
	},
	"key-pair": {
		word: "key pair", notFound: "InvalidKeyPair.NotFound", ids: "KeyNames", list: "KeyPairs", filters: map[string]string{"key-name": "KeyName"},
	},
	"host": {
		id: "HostId", word: "host", notFound: "InvalidHostID.NotFound", ids: "HostIds", list: "Hosts",
		filters: map[string]string{"availability-zone": "AvailabilityZone", "state": "State", "instance-type": "HostProperties.InstanceType", "client-token": "ClientToken"},
	},
	"launch-template": {
		id: "LaunchTemplateId", word: "launch template", notFound: "InvalidLaunchTemplateId.NotFound", ids: "LaunchTemplateIds", list: "LaunchTemplates",
		filters: map[string]string{"launch-template-name": "LaunchTemplateName"},
	},
	"spot-instances-request": {
		id: "SpotInstanceRequestId", word: "spot instance request", notFound: "InvalidSpotInstanceRequestID.NotFound", ids: "SpotInstanceRequestIds", list: "SpotInstanceRequests",
		filters: map[string]string{"instance-id": "InstanceId", "state": "State", "spot-instance-request-id": "SpotInstanceRequestId", "status-code": "Status.Code"},
	},
	"import-snapshot-task": {
		id: "ImportTaskId", word: "conversion task", notFound: "InvalidConversionTaskId", ids: "ImportTaskIds", list: "ImportSnapshotTasks",
		filters: map[string]string{"task-state": "SnapshotTaskDetail.Status"},
	},
	"import-image-task": {
		id: "ImportTaskId", word: "conversion task", notFound: "InvalidConversionTaskId", ids: "ImportTaskIds", list: "ImportImageTasks",
		filters: map[string]string{"task-state": "Status"},
	},
	"instance-type": {
		word: "instance type", notFound: "InvalidInstanceType", ids: "InstanceTypes", list: "InstanceTypes",
		filters: map[string]string{
			"instance-type": "InstanceType", "vcpu-info.default-vcpus": "VCpuInfo.DefaultVCpus", "memory-info.size-in-mib": "MemoryInfo.SizeInMiB",
			"processor-info.supported-architecture": "ProcessorInfo.SupportedArchitectures",
		},
	},
	"fleet":             {id: "FleetId", word: "fleet"},
	"network-interface": {id: "NetworkInterfaceId", word: "network interface"},
}

// describe does what all Describe operations of things do.
func describe(name string) handler {
	return func(c *call) (Doc, error) {
		list, err := c.wanted(name)
		if err != nil {
			return nil, err
		}
		docs := make([]Doc, len(list))
		for i, t := range list {
			docs[i] = t.tagged()
		}
		return c.page(kinds[name].list, docs)
	}
}

// page answers a part of a list, and where the next one begins if there is more.
func (c *call) page(member string, docs []Doc) (Doc, error) {
	if !c.continues() {
		return Doc{member: docs}, nil
	}
	docs, next, err := paged(c, docs, c.in.Int("MaxResults"), c.in.Str("NextToken"))
	result := Doc{member: docs}
	if next != "" {
		result["NextToken"] = next
	}
	return result, err
}

// wanted are the things that a request asks for, by ID, filter and owner, as they are seen now.
func (c *call) wanted(name string) ([]*Thing, error) {
	k := kinds[name]
	ids := c.in.Strs(k.ids)
	if len(ids) > 0 && c.in.Has("MaxResults") && name != "host" {
		return nil, fault("InvalidParameterCombination", "The parameter %s cannot be used with the parameter maxResults", k.ids)
	}
	for _, id := range ids {
		if t := c.w.things[id]; t == nil || t.Kind != name || !c.listed(t) {
			return nil, c.notFound(name, id)
		}
	}
	filters := append(c.in.Docs("Filters"), c.in.Docs("Filter")...)
	for _, filter := range filters {
		filterName := filter.Str("Name")
		if k.filters[filterName] == "" && filterName != "tag-key" && !strings.HasPrefix(filterName, "tag:") {
			return nil, fault("InvalidParameterValue", "The filter '%s' is invalid", filterName)
		}
		if len(filter.Strs("Values")) == 0 {
			return nil, fault("InvalidParameterValue", "The filter '%s' has no values", filterName)
		}
	}
	var list []*Thing
	for _, t := range c.w.order {
		if t.Kind != name || !c.listed(t) || len(ids) > 0 && !slices.Contains(ids, t.ID) {
			continue
		}
		if !slices.ContainsFunc(filters, func(f Doc) bool { return !matches(t, k, f) }) {
			list = append(list, t)
		}
	}
	return list, nil
}

// matches says whether a thing passes a filter.
func matches(t *Thing, k kind, filter Doc) bool {
	var found []string
	name := filter.Str("Name")
	if tag, ok := strings.CutPrefix(name, "tag:"); ok {
		value, there := t.Tags[tag]
		if !there {
			return false
		}
		found = []string{value}
	} else if name == "tag-key" {
		for tag := range t.Tags {
			found = append(found, tag)
		}
	} else {
		found = values(t.Doc, strings.Split(k.filters[name], "."))
	}
	return slices.ContainsFunc(filter.Strs("Values"), func(pattern string) bool {
		return slices.ContainsFunc(found, func(value string) bool { return like(pattern, value) })
	})
}

// like compares as filters do: * and ? stand for others, and nothing else does.
func like(pattern, value string) bool {
	escaped := strings.NewReplacer(`[`, `\[`, `/`, "\x00").Replace(pattern)
	ok, err := path.Match(escaped, strings.ReplaceAll(value, "/", "\x00"))
	return err == nil && ok
}

// values are the texts at a path within a document.
func values(value any, at []string) []string {
	switch v := value.(type) {
	case Doc:
		if len(at) == 0 {
			return nil
		}
		return values(v[at[0]], at[1:])
	case []Doc:
		var all []string
		for _, doc := range v {
			all = append(all, values(doc, at)...)
		}
		return all
	case []string:
		return v
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case int:
		return []string{strconv.Itoa(v)}
	case int64:
		return []string{strconv.FormatInt(v, 10)}
	}
	return nil
}
