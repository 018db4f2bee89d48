package endpoint

func (c *call) allocateHosts() (Doc, error) {
	kind := c.in.Str("InstanceType")
	if c.w.things[kind] == nil {
		return nil, fault("InvalidParameterValue", "The instance type '%s' does not exist here", kind)
	}
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		return result, err
	}
	zone := c.in.Str("AvailabilityZone")
	if c.e.faults.noRoom(zone, kind) {
		return nil, fault("InsufficientHostCapacity", "Insufficient capacity for hosts of %s in %s.", kind, zone)
	}
	count := int(c.in.Int("Quantity"))
	if kind == "mac1.metal" && float64(len(c.w.of("host"))+count) > c.w.quotas["ec2/L-A8448DC5"] {
		return nil, fault("HostLimitExceeded", "The maximum number of hosts of %s was reached", kind)
	}
	tags, err := c.tagsFor("dedicated-host")
	if err != nil {
		return nil, err
	}
	var ids []string
	for range count {
		ids = append(ids, c.w.add(c.now, "host", c.w.id("h-"), tags, Doc{
			"AvailabilityZone": zone, "State": "available", "AllocationTime": c.now, "OwnerId": c.e.Account, "AutoPlacement": "off", "HostRecovery": "off",
			"HostProperties": Doc{"InstanceType": kind, "Cores": 6, "Sockets": 1, "TotalVCpus": 12}, "ClientToken": c.in.Str("ClientToken"),
		}).ID)
	}
	result := Doc{"HostIds": ids}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

// releaseHosts releases what has no machine; the others are named in the answer, which is none of an error.
func (c *call) releaseHosts() (Doc, error) {
	done, failed := []string{}, []Doc{}
	for _, id := range c.in.Strs("HostIds") {
		t := c.get("host", id)
		switch {
		case t == nil:
			failed = append(failed, Doc{"ResourceId": id, "Error": Doc{"Code": "Client.InvalidHostID.NotFound", "Message": "The host ID '" + id + "' does not exist"}})
		case c.e.faults.keeps:
			failed = append(failed, Doc{"ResourceId": id, "Error": Doc{"Code": "Client.InvalidHost.Occupied", "Message": "The minimum allocation time of the host has not passed"}})
		case len(c.onHost(id)) > 0:
			failed = append(failed, Doc{"ResourceId": id, "Error": Doc{"Code": "Client.InvalidHost.Occupied", "Message": "Dedicated host '" + id + "' cannot be released as it is occupied."}})
		default:
			t.gone, t.Doc["State"] = c.now, "released"
			done = append(done, id)
		}
	}
	return Doc{"Successful": done, "Unsuccessful": failed}, nil
}
