package endpoint

import (
	"maps"
	"slices"
	"strings"
)

// source finds what an import reads, and its size in GiB.
func (c *call) source(bucket Doc, role string) (*object, error) {
	if role != "" && role != c.e.ImageRole {
		return nil, fault("InvalidParameter", "The service role %s provided does not exist or does not have sufficient permissions", role)
	}
	found := c.w.buckets[bucket.Str("S3Bucket")][bucket.Str("S3Key")]
	if found == nil {
		return nil, fault("InvalidParameter", "The given S3 object %s/%s does not exist", bucket.Str("S3Bucket"), bucket.Str("S3Key"))
	}
	return found, nil
}

func (c *call) importSnapshot() (Doc, error) {
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		return result, err
	}
	disk := c.in.Sub("DiskContainer")
	bucket, format := disk.Sub("UserBucket"), strings.ToUpper(disk.Str("Format"))
	if !slices.Contains([]string{"RAW", "VHD", "VMDK", "VHDX"}, format) {
		return nil, fault("InvalidParameter", "The disk format '%s' is not supported", disk.Str("Format"))
	}
	data, err := c.source(bucket, c.in.Str("RoleName"))
	if err != nil {
		return nil, err
	}
	tags, err := c.tagsFor("import-snapshot-task")
	if err != nil {
		return nil, err
	}
	detail := Doc{"Format": format, "Status": "active", "StatusMessage": "pending", "Progress": "0", "UserBucket": bucket, "DiskImageSize": float64(len(data.data))}
	task := c.w.add(c.now, "import-snapshot-task", c.w.id("import-snap-"), tags, Doc{"SnapshotTaskDetail": detail, "Description": c.in.Str("Description")})
	c.w.after(c.now, c.e.options.Pace, func() {
		if detail.Str("Status") != "active" {
			return
		}
		detail["SnapshotId"] = c.imported(data, format, nil).ID
		detail["Status"], detail["Progress"] = "completed", "100"
		delete(detail, "StatusMessage")
	})
	result := Doc{"ImportTaskId": task.ID, "SnapshotTaskDetail": maps.Clone(detail)}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

// imported is the snapshot that an import makes. It has no tags of its own.
func (c *call) imported(data *object, format string, tags map[string]string) *Thing {
	const gib = 1 << 30
	t := c.w.add(c.now, "snapshot", c.w.id("snap-"), tags, Doc{
		"OwnerId": c.e.Account, "State": "completed", "Progress": "100%", "VolumeSize": max(1, (len(data.data)+gib-1)/gib), "StartTime": c.now,
		"Encrypted": c.w.encrypt || c.in.Bool("Encrypted"), "Description": "Created by AWS-VMImport service", "VolumeId": "vol-ffffffff",
	})
	t.blocks = map[int64][]byte{}
	if format == "RAW" {
		for n, block := range slices.Collect(slices.Chunk(data.data, blockSize)) {
			t.blocks[int64(n)] = block
		}
	}
	return t
}

func (c *call) importImage() (Doc, error) {
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		return result, err
	}
	disks := c.in.Docs("DiskContainers")
	if len(disks) != 1 {
		return nil, fault("InvalidParameter", "One disk container is supported here, not %d", len(disks))
	}
	format := strings.ToUpper(disks[0].Str("Format"))
	if !slices.Contains([]string{"RAW", "VHD", "VMDK", "OVA", "VHDX"}, format) {
		return nil, fault("InvalidParameter", "The disk format '%s' is not supported", disks[0].Str("Format"))
	}
	data, err := c.source(disks[0].Sub("UserBucket"), c.in.Str("RoleName"))
	if err != nil {
		return nil, err
	}
	tags, err := c.tagsFor("import-image-task")
	if err != nil {
		return nil, err
	}
	id := c.w.id("import-ami-")
	doc := Doc{"Status": "active", "StatusMessage": "pending", "Progress": "1", "Architecture": c.in.Str("Architecture"), "Description": c.in.Str("Description")}
	task := c.w.add(c.now, "import-image-task", id, tags, doc)
	c.w.after(c.now, c.e.options.Pace, func() {
		if doc.Str("Status") != "active" {
			return
		}
		snapshot := c.imported(data, format, nil)
		c.importDone(task, snapshot)
		doc["SnapshotDetails"] = []Doc{{"SnapshotId": snapshot.ID, "Status": "completed", "Format": format, "DiskImageSize": float64(len(data.data))}}
	})
	result := Doc{"ImportTaskId": id, "Status": "active", "Progress": "1", "StatusMessage": "pending"}
	if len(tags) > 0 {
		result["Tags"] = tagList(tags)
	}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

func (c *call) cancelImportTask() (Doc, error) {
	t := c.w.things[c.in.Str("ImportTaskId")]
	if t == nil || kinds[t.Kind].list != "ImportSnapshotTasks" && kinds[t.Kind].list != "ImportImageTasks" {
		return nil, fault("InvalidConversionTaskId", "The conversion task '%s' does not exist", c.in.Str("ImportTaskId"))
	}
	status := t.Doc
	if t.Doc.Has("SnapshotTaskDetail") {
		status = t.Doc.Sub("SnapshotTaskDetail")
	}
	before := status.Str("Status")
	if before == "active" {
		status["Status"], status["StatusMessage"] = "deleted", c.in.Str("CancelReason")
	}
	return Doc{"ImportTaskId": t.ID, "PreviousState": before, "State": status.Str("Status")}, nil
}

// importDone makes the image of a task. It has no tags, either.
func (c *call) importDone(task, snapshot *Thing) {
	image := c.imageDoc(task.ID, task.Doc.Str("Architecture"), []Doc{{"DeviceName": "/dev/sda1", "Ebs": Doc{
		"SnapshotId": snapshot.ID, "VolumeSize": snapshot.Doc["VolumeSize"], "VolumeType": "gp2", "DeleteOnTermination": true, "Encrypted": snapshot.Doc["Encrypted"],
	}}})
	image["Description"], image["EnaSupport"] = "AWS-VMImport", true
	task.Doc["ImageId"] = c.w.add(c.now, "image", c.w.id("ami-"), nil, image).ID
	task.Doc["SnapshotDetails"] = []Doc{{"SnapshotId": snapshot.ID, "Status": "completed", "Format": "RAW", "DiskImageSize": 1.0}}
	task.Doc["Status"], task.Doc["Progress"] = "completed", "100"
	delete(task.Doc, "StatusMessage")
}
