package endpoint

import "time"

// Leftovers of programs that have died, as they lie in an account. All were made an hour ago.

// LeaveVolume leaves a volume that no machine has.
func (e *Endpoint) LeaveVolume(tags map[string]string) string {
	return e.leave("volume", "vol-", tags, func() Doc {
		return Doc{"AvailabilityZone": e.Zones[0], "CreateTime": time.Now().UTC(), "Size": 8, "VolumeType": "gp3", "State": "available", "Encrypted": false, "Attachments": []Doc{}}
	})
}

// LeaveSnapshot leaves a snapshot that no image is made of.
func (e *Endpoint) LeaveSnapshot(tags map[string]string) string {
	return e.leave("snapshot", "snap-", tags, func() Doc {
		return Doc{
			"OwnerId": e.Account, "State": "completed", "Progress": "100%", "VolumeSize": 1, "StartTime": time.Now().UTC(), "Encrypted": false,
			"Description": "", "VolumeId": "vol-ffffffff",
		}
	})
}

// LeaveImage leaves an image of a snapshot.
func (e *Endpoint) LeaveImage(name, snapshot string, tags map[string]string) string {
	return e.leave("image", "ami-", tags, func() Doc {
		c := &call{e: e, w: e.world, now: time.Now().UTC()}
		return c.imageDoc(name, "", []Doc{{"DeviceName": "/dev/sda1", "Ebs": Doc{
			"SnapshotId": snapshot, "VolumeSize": 1, "VolumeType": "gp3", "DeleteOnTermination": true, "Encrypted": false,
		}}})
	})
}

// LeaveHost leaves a dedicated host without a machine.
func (e *Endpoint) LeaveHost(tags map[string]string) string {
	return e.leave("host", "h-", tags, func() Doc {
		return Doc{
			"AvailabilityZone": e.Zones[0], "State": "available", "AllocationTime": time.Now().UTC().Add(-time.Hour), "OwnerId": e.Account, "AutoPlacement": "off",
			"HostRecovery": "off", "HostProperties": Doc{"InstanceType": "m5.large", "Cores": 6, "Sockets": 1, "TotalVCpus": 12},
		}
	})
}

// LeaveTemplate leaves a launch template.
func (e *Endpoint) LeaveTemplate(name string, tags map[string]string) string {
	return e.leave("launch-template", "lt-", tags, func() Doc {
		return Doc{"LaunchTemplateName": name, "CreateTime": time.Now().UTC(), "CreatedBy": "", "DefaultVersionNumber": 1, "LatestVersionNumber": 1}
	})
}

// LeaveObject leaves an object in the bucket.
func (e *Endpoint) LeaveObject(key string, tags map[string]string) {
	e.locked(func() {
		e.world.buckets[e.Bucket][key] = &object{data: []byte("left"), etag: etag([]byte("left")), tags: tags, at: time.Now().UTC().Truncate(time.Second)}
	})
}

// LeaveParts leaves an upload in parts that nobody ended.
func (e *Endpoint) LeaveParts(key string) {
	e.locked(func() {
		e.world.uploads[e.world.id("upload-")] = &upload{
			bucket: e.Bucket, key: key, object: object{at: time.Now().UTC().Truncate(time.Second)}, parts: map[int64][]byte{1: []byte("left")},
		}
	})
}

func (e *Endpoint) leave(kind, prefix string, tags map[string]string, doc func() Doc) (id string) {
	e.locked(func() { id = e.world.add(time.Now().UTC().Add(-time.Hour), kind, e.world.id(prefix), tags, doc()).ID })
	return id
}

// LeaveImport leaves an import that is done, and whose builder gave no tags to what it made; those, the image first, are
// returned.
func (e *Endpoint) LeaveImport(image bool, tags map[string]string) (ids []string) {
	e.locked(func() {
		c := &call{e: e, w: e.world, now: time.Now().UTC()}
		snapshot := c.imported(&object{data: make([]byte, 1)}, "RAW", nil)
		ids = []string{snapshot.ID}
		if !image {
			e.world.add(c.now, "import-snapshot-task", e.world.id("import-snap-"), tags, Doc{
				"SnapshotTaskDetail": Doc{"Status": "completed", "SnapshotId": snapshot.ID, "Format": "RAW"},
			})
			return
		}
		doc := Doc{"Status": "active"}
		task := e.world.add(c.now, "import-image-task", e.world.id("import-ami-"), tags, doc)
		c.importDone(task, snapshot)
		ids = []string{doc.Str("ImageId"), snapshot.ID}
	})
	return ids
}

// Exists says whether something is there in truth.
func (e *Endpoint) Exists(id string) (yes bool) {
	e.locked(func() { t := e.world.things[id]; yes = t != nil && t.gone.IsZero() })
	return yes
}

// LeaveInstance leaves a machine that runs, with a volume, both with these tags.
func (e *Endpoint) LeaveInstance(tags map[string]string) (id string) {
	e.locked(func() {
		c := &call{e: e, w: e.world, now: time.Now().UTC().Add(-time.Hour)}
		l := &launch{spec: Doc{}, kind: "t3.small", image: e.world.of("image")[0], subnet: e.world.of("subnet")[0]}
		disks, err := c.disks(l)
		if err != nil {
			panic(err) // the first image has a volume
		}
		t := c.machine(l, 0, disks, map[string]map[string]string{"instance": tags, "volume": tags})
		t.Doc["State"] = stateDoc("running")
		id = t.ID
	})
	return id
}
