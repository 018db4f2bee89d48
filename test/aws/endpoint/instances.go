package endpoint

import (
	"encoding/base64"
	"fmt"
	"maps"
)

// states are those of machines, with their numbers.
var states = map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

func stateDoc(name string) Doc { return Doc{"Name": name, "Code": states[name]} }

// disk is a volume to be made for a machine.
type disk struct {
	device string
	doc    Doc
	keep   bool
}

// disks are those of the image, with what the request says of them, and more of the request's.
func (c *call) disks(l *launch) ([]disk, error) {
	wanted := map[string]Doc{}
	var order []string
	for _, m := range l.image.Doc["BlockDeviceMappings"].([]Doc) {
		wanted[m.Str("DeviceName")] = maps.Clone(m.Sub("Ebs"))
		order = append(order, m.Str("DeviceName"))
	}
	for _, m := range l.spec.Docs("BlockDeviceMappings") {
		name := m.Str("DeviceName")
		if wanted[name] == nil {
			wanted[name] = Doc{"DeleteOnTermination": true, "VolumeType": "gp2"}
			order = append(order, name)
		}
		if size := m.Sub("Ebs").Int("VolumeSize"); size > 0 && size < number(wanted[name]["VolumeSize"]) {
			return nil, fault("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot, expect size >= %dGB", size, number(wanted[name]["VolumeSize"]))
		}
		maps.Copy(wanted[name], m.Sub("Ebs"))
	}
	var disks []disk
	for _, name := range order {
		doc := wanted[name]
		keep := !doc.Bool("DeleteOnTermination")
		if err := c.volumeSpec(doc); err != nil {
			return nil, err
		}
		delete(doc, "DeleteOnTermination")
		disks = append(disks, disk{name, doc, keep})
	}
	return disks, nil
}

func number(value any) int64 {
	switch n := value.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	}
	return 0
}

// volumeSpec holds speeds against types, makes a size of what has none, and asks the quota.
func (c *call) volumeSpec(doc Doc) error {
	kind := doc.Str("VolumeType")
	size, iops, throughput := number(doc["VolumeSize"]), doc.Int("Iops"), doc.Int("Throughput")
	if size == 0 {
		return fault("MissingParameter", "The request must contain the parameter size or snapshotId")
	}
	switch {
	case doc.Has("Throughput") && kind != "gp3":
		return fault("InvalidParameterCombination", "The throughput parameter is not supported for %s volumes", kind)
	case doc.Has("Iops") && kind != "gp3" && kind != "io1" && kind != "io2":
		return fault("InvalidParameterCombination", "The parameter iops is not supported for %s volumes", kind)
	case (kind == "io1" || kind == "io2") && !doc.Has("Iops"):
		return fault("MissingParameter", "The request must contain the parameter iops for %s volumes", kind)
	case kind == "gp3" && doc.Has("Iops") && (iops < 3000 || iops > 16000):
		return fault("InvalidParameterValue", "Volume iops of %d is outside of 3000 to 16000", iops)
	case doc.Has("Throughput") && (throughput < 125 || throughput > 1000):
		return fault("InvalidParameterValue", "Volume throughput of %d is outside of 125 to 1000", throughput)
	}
	code := map[string]string{"gp3": "ebs/L-7A658B76", "gp2": "ebs/L-D18FCD1D"}[kind]
	used := int64(0)
	for _, v := range c.w.of("volume") {
		if v.Doc.Str("VolumeType") == kind {
			used += number(v.Doc["Size"])
		}
	}
	if code != "" && float64(used+size) > c.w.quotas[code]*1024 {
		return fault("VolumeLimitExceeded", "You have exceeded your maximum %s storage limit", kind)
	}
	return nil
}

// machine makes one, with its volumes and its spot request.
func (c *call) machine(l *launch, index int, disks []disk, tags map[string]map[string]string) *Thing {
	zone := l.subnet.Doc.Str("AvailabilityZone")
	c.w.hosts++
	address := c.e.options.Address
	if address == nil {
		address = addresses
	}
	public, private := address(c.w.hosts)
	id := c.w.id("i-")
	group := []Doc{}
	for _, g := range l.groups {
		group = append(group, Doc{"GroupId": g, "GroupName": c.w.things[g].Doc.Str("GroupName")})
	}
	placement := Doc{"AvailabilityZone": zone, "Tenancy": "default"}
	doc := Doc{
		"ImageId": l.image.ID, "InstanceType": l.kind, "State": stateDoc("pending"), "Placement": placement, "LaunchTime": c.now, "AmiLaunchIndex": index,
		"SubnetId": l.subnet.ID, "VpcId": l.subnet.Doc.Str("VpcId"), "PrivateIpAddress": private, "Architecture": l.image.Doc.Str("Architecture"),
		"SecurityGroups": group, "RootDeviceName": l.image.Doc.Str("RootDeviceName"), "RootDeviceType": "ebs", "VirtualizationType": "hvm", "Hypervisor": "xen",
		"Monitoring": Doc{"State": "disabled"}, "StateTransitionReason": "", "EbsOptimized": l.spec.Bool("EbsOptimized"),
		"MetadataOptions": Doc{"State": "applied", "HttpTokens": tokens(l), "HttpEndpoint": "enabled"},
	}
	for _, name := range []string{"KeyName", "ClientToken"} {
		if l.spec.Has(name) {
			doc[name] = l.spec.Str(name)
		}
	}
	if len(l.spec.Sub("IamInstanceProfile")) > 0 {
		doc["IamInstanceProfile"] = Doc{"Arn": "arn:aws:iam::" + c.e.Account + ":instance-profile/" + c.e.Profile, "Id": "AIPA0000000000000001"}
	}
	if l.host != nil {
		placement["HostId"], placement["Tenancy"] = l.host.ID, "host"
	}
	ni := Doc{"NetworkInterfaceId": c.w.id("eni-"), "SubnetId": l.subnet.ID, "VpcId": c.e.VPC, "PrivateIpAddress": private, "Status": "in-use"}
	if l.ipv6 > 0 {
		ipv6 := fmt.Sprintf("2001:db8::%x", c.w.hosts)
		doc["Ipv6Address"], ni["Ipv6Addresses"] = ipv6, []Doc{{"Ipv6Address": ipv6}}
	}
	doc["NetworkInterfaces"] = []Doc{ni}
	if l.spot {
		doc["InstanceLifecycle"], doc["SpotInstanceRequestId"] = "spot", c.spotRequest(id, zone, tags["spot-instances-request"])
	}
	t := c.w.add(c.now, "instance", id, maps.Clone(tags["instance"]), doc)
	c.attach(t, disks, tags["volume"])
	c.w.after(c.now, c.e.options.Pace, func() {
		if t.State() != "pending" {
			return
		}
		doc["State"] = stateDoc("running")
		if l.public {
			doc["PublicIpAddress"], doc["PublicDnsName"] = public, "ec2-"+t.ID+".compute.amazonaws.com"
		}
	})
	return t
}

func tokens(l *launch) string {
	if t := l.spec.Sub("MetadataOptions").Str("HttpTokens"); t != "" {
		return t
	}
	if l.image.Doc.Str("ImdsSupport") == "v2.0" {
		return "required"
	}
	return "optional"
}

func (c *call) attach(t *Thing, disks []disk, tags map[string]string) {
	var mapped []Doc
	for _, d := range disks {
		doc := Doc{
			"AvailabilityZone": t.Doc.Sub("Placement").Str("AvailabilityZone"), "CreateTime": c.now, "Size": number(d.doc["VolumeSize"]),
			"VolumeType": d.doc.Str("VolumeType"), "State": "in-use", "Encrypted": c.w.encrypt || d.doc.Bool("Encrypted"),
			"Attachments": []Doc{{"InstanceId": t.ID, "Device": d.device, "State": "attached", "DeleteOnTermination": !d.keep}},
		}
		for _, name := range []string{"Iops", "Throughput", "SnapshotId"} {
			if d.doc.Has(name) {
				doc[name] = d.doc[name]
			}
		}
		v := c.w.add(c.now, "volume", c.w.id("vol-"), maps.Clone(tags), doc)
		mapped = append(mapped, Doc{"DeviceName": d.device, "Ebs": Doc{"VolumeId": v.ID, "Status": "attached", "DeleteOnTermination": !d.keep}})
	}
	t.Doc["BlockDeviceMappings"] = mapped
}

func (c *call) spotRequest(instance, zone string, tags map[string]string) string {
	return c.w.add(c.now, "spot-instances-request", c.w.id("sir-"), maps.Clone(tags), Doc{
		"InstanceId": instance, "State": "active", "Status": Doc{"Code": "fulfilled", "Message": "Your Spot request is fulfilled."},
		"Type": "one-time", "CreateTime": c.now, "LaunchedAvailabilityZone": zone,
	}).ID
}

func (c *call) getConsoleOutput() (Doc, error) {
	t := c.get("instance", c.in.Str("InstanceId"))
	if t == nil {
		return nil, c.notFound("instance", c.in.Str("InstanceId"))
	}
	output := base64.StdEncoding.EncodeToString([]byte("console of " + t.ID + "\r\n"))
	return Doc{"InstanceId": t.ID, "Output": output, "Timestamp": c.now}, nil
}
