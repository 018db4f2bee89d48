package endpoint

import (
	"maps"
	"time"
)

func (c *call) terminateInstances() (Doc, error) {
	var things []*Thing
	for _, id := range c.in.Strs("InstanceIds") {
		t := c.get("instance", id)
		if t == nil {
			return nil, c.notFound("instance", id)
		}
		things = append(things, t)
	}
	if c.in.Bool("DryRun") {
		return nil, fault("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	var changes []Doc
	for _, t := range things {
		before := maps.Clone(t.Doc.Sub("State"))
		c.w.end(t, c.now, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown", "User initiated")
		changes = append(changes, Doc{"InstanceId": t.ID, "PreviousState": before, "CurrentState": t.Doc["State"]})
	}
	return Doc{"TerminatingInstances": changes}, nil
}

// end ends a machine, and what goes with it.
func (w *world) end(t *Thing, now time.Time, code, message, reason string) {
	if t.ended {
		return
	}
	t.ended = true
	t.Doc["State"] = stateDoc("shutting-down")
	t.Doc["StateReason"] = Doc{"Code": code, "Message": message}
	t.Doc["StateTransitionReason"] = reason + " (" + now.Format("2006-01-02 15:04:05") + " GMT)"
	if request := w.things[t.Doc.Str("SpotInstanceRequestId")]; request != nil && code == "Client.UserInitiatedShutdown" {
		request.Doc["State"], request.Doc["Status"] = "closed", Doc{"Code": "instance-terminated-by-user", "Message": "Spot Instance terminated due to user-initiated termination."}
	}
	w.after(now, w.e.options.Pace, func() {
		t.Doc["State"] = stateDoc("terminated")
		for _, name := range []string{"PublicIpAddress", "PublicDnsName", "PrivateIpAddress", "Ipv6Address", "SubnetId", "VpcId"} {
			delete(t.Doc, name)
		}
		t.Doc["NetworkInterfaces"], t.Doc["BlockDeviceMappings"] = []Doc{}, []Doc{}
		for _, v := range w.of("volume") {
			for _, a := range v.Doc["Attachments"].([]Doc) {
				if a.Str("InstanceId") != t.ID {
					continue
				}
				v.Doc["State"], v.Doc["Attachments"] = "available", []Doc{}
				if a.Bool("DeleteOnTermination") {
					v.gone = now.Add(w.e.options.Pace)
				}
			}
		}
	})
}

// Interrupt ends a spot machine as Amazon does when it wants it back.
func (e *Endpoint) Interrupt(id string) {
	e.locked(func() {
		t := e.world.things[id]
		if t == nil || t.Doc.Str("InstanceLifecycle") != "spot" {
			e.t.Errorf("interrupt %s: it is no spot machine", id)
			return
		}
		message := "Server.SpotInstanceTermination: Spot instance termination"
		e.world.end(t, time.Now().UTC(), "Server.SpotInstanceTermination", message, "Server.SpotInstanceTermination")
		request := e.world.things[t.Doc.Str("SpotInstanceRequestId")]
		request.Doc["State"] = "closed"
		request.Doc["Status"] = Doc{"Code": "instance-terminated-no-capacity", "Message": "There is no capacity available that matches your request."}
	})
}

func (c *call) describeInstances() (Doc, error) {
	list, err := c.wanted("instance")
	if err != nil {
		return nil, err
	}
	docs := make([]Doc, len(list))
	for i, t := range list {
		docs[i] = Doc{"ReservationId": "r-" + t.ID[2:], "OwnerId": c.e.Account, "Instances": []Doc{t.tagged()}}
	}
	return c.page("Reservations", docs)
}

func (c *call) describeInstanceStatus() (Doc, error) {
	list, err := c.wanted("instance")
	if err != nil {
		return nil, err
	}
	var docs []Doc
	for _, t := range list {
		if t.State() == "running" || c.in.Bool("IncludeAllInstances") {
			ok := Doc{"Status": "ok"}
			docs = append(docs, Doc{
				"InstanceId": t.ID, "InstanceState": t.Doc["State"], "AvailabilityZone": t.Doc.Sub("Placement").Str("AvailabilityZone"),
				"InstanceStatus": ok, "SystemStatus": ok,
			})
		}
	}
	return c.page("InstanceStatuses", docs)
}
