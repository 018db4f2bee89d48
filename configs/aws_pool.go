package configs

import "maps"

// awsPool is what a pool says itself; nil is nothing.
type awsPool struct {
	subnets, groups                         []string
	internal, hostKeys, address, ipv4, ipv6 *bool
}

// awsPool decodes one pool of p.
func (l *loader) awsPool(p *Provider) func(value) Pool {
	return func(v value) Pool {
		pool, said := defaultPool(p), &awsPool{}
		var zone, subnet, group string
		keys := l.poolKeys(&pool)
		maps.Copy(keys, fields{
			"max-cores":             number(&pool.MaxCores, 0, unlimited),
			"max-ram":               number(&pool.MaxRAM, 0, unlimited),
			"max-resources":         numberMap(&pool.MaxResources),
			"ignore-provider-quota": flag(&pool.IgnoreProviderQuota),
			"availability-zone":     text(&zone),
			"availability-zones":    texts(&pool.AvailabilityZones), // ours
			"subnet-id":             text(&subnet),
			"subnet-ids":            texts(&said.subnets), // ours
			"security-group-id":     text(&group),
			"security-group-ids":    texts(&said.groups), // ours
			"use-internal-ip":       optionalFlag(&said.internal),
			"host-key-checking":     optionalFlag(&said.hostKeys),
			"public-ipv4":           optionalFlag(&said.ipv4),
			"public-ip-address":     outdated("public-ipv4", optionalFlag(&said.address)),
			"public-ipv6":           optionalFlag(&said.ipv6),
			"labels":                named(&pool.Labels, poolLabelName, l.awsLabel(p)),
		})
		v.require(v.decode("pool", keys), "name")
		for _, one := range []struct {
			text string
			all  *[]string
			key  string
		}{
			{zone, &pool.AvailabilityZones, "availability-zone"}, {subnet, &said.subnets, "subnet-id"}, {group, &said.groups, "security-group-id"},
		} {
			switch {
			case one.text == "":
			case len(*one.all) > 0:
				v.fail("%s and %ss exclude each other", one.key, one.key)
			default:
				*one.all = []string{one.text}
			}
		}
		for i := range pool.Labels {
			if own, ok := pool.Labels[i].Settings.(*AWSLabel); ok && own.DedicatedHost && len(pool.AvailabilityZones) == 0 {
				v.report(lint, "the label %q can never be launched: dedicated-host needs the pool's availability-zone", pool.Labels[i].Name)
			}
		}
		pool.Settings = said // checkAWS makes an AWSPool of it
		return pool
	}
}

// awsLabel decodes one label of a pool of p.
func (l *loader) awsLabel(p *Provider) func(value) PoolLabel {
	return func(v value) PoolLabel {
		label, own := PoolLabel{}, &AWSLabel{}
		have := v.decode("pool label", fields{
			"name":                 l.labelName(&label.Name),
			"cloud-image":          text(&label.CloudImage),
			"diskimage":            text(&label.DiskImage),
			"instance-type":        text(&own.InstanceType),
			"fleet":                awsFleet(&own.Fleet),
			"key-name":             text(&label.KeyName),
			"console-log":          flag(&label.ConsoleLog), // ours
			"host-key-checking":    optionalFlag(&label.HostKeyChecking),
			"ebs-optimized":        flag(&own.EBSOptimized),
			"volume-type":          text(&own.VolumeType),
			"volume-size":          number(&own.VolumeSize, 1, unlimited),
			"iops":                 number(&own.IOPS, 1, unlimited),
			"throughput":           number(&own.Throughput, 1, unlimited),
			"userdata":             text(&label.UserData),
			"iam-instance-profile": awsProfile(own),
			"tags":                 textMap(&own.Tags),
			"dynamic-tags":         dynamicProperties(&label.DynamicProperties),
			"use-spot":             flag(&own.UseSpot),
			"spot-fallback":        oneOf(&own.SpotFallback, SpotOnDemand), // ours
			"imdsv2":               oneOf(&own.IMDSv2, "required", "optional"),
			"dedicated-host":       flag(&own.DedicatedHost),
		})
		v.require(have, "name", "key-name")
		v.checkAWSLabel(own, have)
		l.checkLabelImage(v, p, label)
		label.Settings = own
		return label
	}
}

// checkAWSLabel reports what excludes each other.
func (v value) checkAWSLabel(own *AWSLabel, have present) {
	switch {
	case have["diskimage"] && have["cloud-image"]:
		v.fail("diskimage and cloud-image exclude each other")
	case !have["diskimage"] && !have["cloud-image"]:
		v.lacks([]string{"diskimage", "cloud-image"}, "the label needs either diskimage or cloud-image")
	}
	switch {
	case have["instance-type"] && have["fleet"]:
		v.fail("instance-type and fleet exclude each other")
	case !have["instance-type"] && !have["fleet"]:
		v.lacks([]string{"instance-type", "fleet"}, "the label needs either instance-type or fleet")
	}
	switch {
	case own.DedicatedHost && own.UseSpot:
		v.fail("dedicated-host and use-spot exclude each other")
	case own.DedicatedHost && own.Fleet != nil:
		v.fail("dedicated-host and fleet exclude each other")
	case own.SpotFallback != "" && !own.UseSpot:
		v.report(notice, "spot-fallback has no effect without use-spot")
	}
}

// awsFleet decodes how Amazon chooses the type of an instance.
func awsFleet(out **AWSFleet) decodeFunc {
	return func(v value) {
		var f AWSFleet
		v.require(v.decode("fleet", fields{
			"instance-types":      texts(&f.InstanceTypes),
			"allocation-strategy": oneOf(&f.Strategy, awsStrategies...),
		}), "instance-types", "allocation-strategy")
		if len(f.InstanceTypes) == 0 && v.asks == nil {
			v.fail("the fleet has no instance-types")
		}
		*out = &f
	}
}

// awsProfile decodes the profile that instances run under.
func awsProfile(own *AWSLabel) decodeFunc {
	return func(v value) {
		have := v.decode("instance profile", fields{"name": text(&own.ProfileName), "arn": text(&own.ProfileARN)})
		if have["name"] && have["arn"] {
			v.fail("name and arn exclude each other")
		}
	}
}
