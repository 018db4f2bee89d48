package endpoint

import (
	"maps"
	"slices"
)

func (c *call) describeImages() (Doc, error) {
	list, err := c.wanted("image")
	if err != nil {
		return nil, err
	}
	docs := []Doc{}
	for _, t := range list {
		if c.owned(t, c.in.Strs("Owners")) {
			docs = append(docs, t.tagged())
		}
	}
	return c.page("Images", docs)
}

// owned says whether a thing is of one of these: self, an alias, an account. None asks for all.
func (c *call) owned(t *Thing, owners []string) bool {
	return len(owners) == 0 || slices.ContainsFunc(owners, func(o string) bool {
		alias := t.Doc.Str("ImageOwnerAlias") + t.Doc.Str("OwnerAlias")
		return o == t.Doc.Str("OwnerId") || o == "self" && t.Doc.Str("OwnerId") == c.e.Account || alias != "" && o == alias
	})
}

func (c *call) describeSnapshots() (Doc, error) {
	list, err := c.wanted("snapshot")
	if err != nil {
		return nil, err
	}
	docs := []Doc{}
	for _, t := range list {
		if c.owned(t, c.in.Strs("OwnerIds")) {
			docs = append(docs, t.tagged())
		}
	}
	return c.page("Snapshots", docs)
}

func (c *call) registerImage() (Doc, error) {
	name := c.in.Str("Name")
	if len(name) < 3 || len(name) > 128 {
		return nil, fault("InvalidAMIName.Malformed", "AMI names must be between 3 and 128 characters long")
	}
	for _, t := range c.w.of("image") {
		if t.Doc.Str("Name") == name && t.Doc.Str("OwnerId") == c.e.Account {
			return nil, fault("InvalidAMIName.Duplicate", "AMI name %s is already in use by AMI %s", name, t.ID)
		}
	}
	tags := map[string]string{}
	if err := error(nil); len(c.in.Docs("TagSpecifications")) > 0 {
		if tags, err = c.tagsFor("image", "snapshot"); err != nil {
			return nil, err
		}
	}
	root := c.in.Str("RootDeviceName")
	mapped, rooted := []Doc{}, false
	for _, m := range c.in.Docs("BlockDeviceMappings") {
		ebs := maps.Clone(m.Sub("Ebs"))
		snapshot := c.get("snapshot", ebs.Str("SnapshotId"))
		if snapshot == nil {
			return nil, c.notFound("snapshot", ebs.Str("SnapshotId"))
		}
		if snapshot.State() != "completed" {
			return nil, fault("InvalidParameterValue", "Snapshot '%s' is not in the 'completed' state", snapshot.ID)
		}
		if !ebs.Has("VolumeSize") {
			ebs["VolumeSize"] = number(snapshot.Doc["VolumeSize"])
		}
		if !ebs.Has("VolumeType") {
			ebs["VolumeType"] = "standard"
		}
		if !ebs.Has("DeleteOnTermination") {
			ebs["DeleteOnTermination"] = true
		}
		if err := c.volumeSpec(ebs); err != nil {
			return nil, err
		}
		ebs["Encrypted"] = snapshot.Doc["Encrypted"]
		mapped = append(mapped, Doc{"DeviceName": m.Str("DeviceName"), "Ebs": ebs})
		rooted = rooted || m.Str("DeviceName") == root
	}
	if !rooted {
		return nil, fault("InvalidBlockDeviceMapping", "The root device %s has no mapping to a snapshot", root)
	}
	doc := c.imageDoc(name, c.in.Str("Architecture"), mapped)
	doc["RootDeviceName"], doc["EnaSupport"] = root, c.in.Bool("EnaSupport")
	for _, member := range []string{"Description", "ImdsSupport", "BootMode", "TpmSupport"} {
		if c.in.Has(member) {
			doc[member] = c.in[member]
		}
	}
	return Doc{"ImageId": c.w.add(c.now, "image", c.w.id("ami-"), tags, doc).ID}, nil
}

func (c *call) imageDoc(name, arch string, mapped []Doc) Doc {
	if arch == "" {
		arch = "x86_64"
	}
	return Doc{
		"Name": name, "Architecture": arch, "CreationDate": c.now.Format("2006-01-02T15:04:05.000Z"), "OwnerId": c.e.Account, "State": "available",
		"ImageLocation": c.e.Account + "/" + name, "ImageType": "machine", "Public": false, "Hypervisor": "xen", "VirtualizationType": "hvm",
		"RootDeviceName": "/dev/sda1", "RootDeviceType": "ebs", "PlatformDetails": "Linux/UNIX", "UsageOperation": "RunInstances", "BlockDeviceMappings": mapped,
	}
}

func (c *call) deregisterImage() (Doc, error) {
	t := c.get("image", c.in.Str("ImageId"))
	if t == nil {
		return nil, fault("InvalidAMIID.Unavailable", "The image id '[%s]' is no longer available", c.in.Str("ImageId"))
	}
	if t.Doc.Str("OwnerId") != c.e.Account {
		return nil, fault("AuthFailure", "Not authorized for image: %s", t.ID)
	}
	t.gone = c.now
	return nil, nil
}

func (c *call) deleteSnapshot() (Doc, error) {
	t := c.get("snapshot", c.in.Str("SnapshotId"))
	if t == nil {
		return nil, c.notFound("snapshot", c.in.Str("SnapshotId"))
	}
	for _, image := range c.w.of("image") {
		for _, m := range image.Doc["BlockDeviceMappings"].([]Doc) {
			if m.Sub("Ebs").Str("SnapshotId") == t.ID {
				return nil, fault("InvalidSnapshot.InUse", "The snapshot %s is currently in use by %s", t.ID, image.ID)
			}
		}
	}
	if t.Doc.Str("OwnerId") != c.e.Account {
		return nil, fault("UnauthorizedOperation", "You are not the owner of %s", t.ID)
	}
	t.gone = c.now
	return nil, nil
}

func (c *call) deleteVolume() (Doc, error) {
	t := c.get("volume", c.in.Str("VolumeId"))
	if t == nil {
		return nil, c.notFound("volume", c.in.Str("VolumeId"))
	}
	if t.State() == "in-use" {
		return nil, fault("VolumeInUse", "Volume %s is currently attached", t.ID)
	}
	t.gone = c.now
	return nil, nil
}
