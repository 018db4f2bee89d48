package endpoint

import (
	"errors"
	"maps"
	"slices"

	"poolkeeper/test/aws/model"
)

func (c *call) createLaunchTemplate() (Doc, error) {
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		return result, err
	}
	name := c.in.Str("LaunchTemplateName")
	for _, t := range c.w.of("launch-template") {
		if t.Doc.Str("LaunchTemplateName") == name {
			return nil, fault("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
	}
	tags, err := c.tagsFor("launch-template")
	if err != nil {
		return nil, err
	}
	t := c.w.add(c.now, "launch-template", c.w.id("lt-"), tags, Doc{
		"LaunchTemplateName": name, "CreateTime": c.now, "CreatedBy": c.principal, "DefaultVersionNumber": 1, "LatestVersionNumber": 1,
	})
	c.w.templates[t.ID] = c.in.Sub("LaunchTemplateData")
	result := Doc{"LaunchTemplate": t.tagged()}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

// template is the one that a request names, as it is seen now.
func (c *call) template(in Doc) (*Thing, error) {
	id, name := in.Str("LaunchTemplateId"), in.Str("LaunchTemplateName")
	if (id == "") == (name == "") {
		return nil, fault("MissingParameter", "The request must contain either LaunchTemplateId or LaunchTemplateName")
	}
	for _, t := range c.w.of("launch-template") {
		if (t.ID == id || t.Doc.Str("LaunchTemplateName") == name) && c.get("launch-template", t.ID) != nil {
			return t, nil
		}
	}
	if name != "" {
		return nil, fault("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
	}
	return nil, fault("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
}

func (c *call) deleteLaunchTemplate() (Doc, error) {
	t, err := c.template(c.in)
	if err != nil {
		return nil, err
	}
	t.gone = c.now
	return Doc{"LaunchTemplate": t.tagged()}, nil
}

func (c *call) describeLaunchTemplates() (Doc, error) {
	names := c.in.Strs("LaunchTemplateNames")
	list, err := c.wanted("launch-template")
	if err != nil {
		return nil, err
	}
	docs := []Doc{}
	for _, t := range list {
		if len(names) == 0 || slices.Contains(names, t.Doc.Str("LaunchTemplateName")) {
			docs = append(docs, t.tagged())
		}
	}
	if len(docs) < len(names) {
		return nil, fault("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
	}
	return c.page("LaunchTemplates", docs)
}

// createFleet starts machines at once (type instant), each by the first override that has room.
func (c *call) createFleet() (Doc, error) {
	if result, err := c.again(c.in.Str("ClientToken")); result != nil || err != nil {
		return result, err
	}
	if c.in.Str("Type") != "instant" {
		return nil, fault("UnsupportedOperation", "Only fleets of the type instant are in the endpoint of the tests")
	}
	capacity := c.in.Sub("TargetCapacitySpecification")
	lifecycle := capacity.Str("DefaultTargetCapacityType")
	if lifecycle == "" {
		lifecycle = "on-demand"
	}
	tags, err := c.tagsFor("fleet", "instance", "volume")
	if err != nil {
		return nil, err
	}
	instances, failures := []Doc{}, []Doc{}
	for _, config := range c.in.Docs("LaunchTemplateConfigs") {
		named := config.Sub("LaunchTemplateSpecification")
		template, err := c.template(named)
		if err != nil {
			return nil, err
		}
		if !named.Has("Version") {
			return nil, fault("MissingParameter", "The request must contain the parameter LaunchTemplateSpecification.Version")
		}
		specification := Doc{"LaunchTemplateId": template.ID, "Version": "1"}
		overrides := config.Docs("Overrides")
		if len(overrides) == 0 {
			overrides = []Doc{{}}
		}
		for _, override := range overrides {
			if int64(len(instances)) >= capacity.Int("TotalTargetCapacity") {
				break
			}
			used := Doc{"LaunchTemplateSpecification": specification, "Overrides": override}
			thing, err := c.fleetMachine(template, override, lifecycle)
			if err != nil {
				code, message := err.Error(), ""
				if f := (*model.Fault)(nil); errors.As(err, &f) {
					code, message = f.Code, f.Message
				}
				failures = append(failures, Doc{"ErrorCode": code, "ErrorMessage": message, "Lifecycle": lifecycle, "LaunchTemplateAndOverrides": used})
				continue
			}
			instances = append(instances, Doc{
				"InstanceIds": []string{thing.ID}, "InstanceType": thing.Doc.Str("InstanceType"), "Lifecycle": lifecycle, "LaunchTemplateAndOverrides": used,
			})
		}
	}
	result := Doc{"FleetId": c.w.add(c.now, "fleet", c.w.id("fleet-"), tags, Doc{}).ID, "Instances": instances, "Errors": failures}
	c.remember(c.in.Str("ClientToken"), result)
	return result, nil
}

// fleetMachine starts one machine of a fleet.
func (c *call) fleetMachine(template *Thing, override Doc, lifecycle string) (*Thing, error) {
	spec := maps.Clone(c.w.templates[template.ID])
	for _, name := range []string{"InstanceType", "ImageId"} {
		if override.Has(name) {
			spec[name] = override[name]
		}
	}
	if subnet := override.Str("SubnetId"); subnet != "" {
		if interfaces := spec.Docs("NetworkInterfaces"); len(interfaces) > 0 {
			first := maps.Clone(interfaces[0])
			first["SubnetId"] = subnet
			spec["NetworkInterfaces"] = []any{first}
		} else {
			spec["SubnetId"] = subnet
		}
	}
	if zone := override.Str("AvailabilityZone"); zone != "" {
		spec["Placement"] = Doc{"AvailabilityZone": zone}
	}
	both := append(spec.Docs("TagSpecifications"), c.in.Docs("TagSpecifications")...)
	merged := []any{}
	for i, s := range both {
		later := slices.ContainsFunc(both[i+1:], func(o Doc) bool { return o.Str("ResourceType") == s.Str("ResourceType") })
		if !later {
			merged = append(merged, s)
		}
	}
	spec["TagSpecifications"] = merged
	one := *c
	one.in = spec
	l, err := one.prepareAs(spec, lifecycle)
	if err != nil {
		return nil, err
	}
	things, err := one.start(l, 1, 1)
	if err != nil {
		return nil, err
	}
	return things[0], nil
}
