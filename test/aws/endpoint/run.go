package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// launch is what is to be started, of a request, its template and its overrides.
type launch struct {
	spec      Doc
	subnet    *Thing
	image     *Thing
	host      *Thing
	kind      string
	spot      bool
	groups    []string
	public    bool
	ipv6      int
	lifecycle string
}

func (c *call) runInstances() (Doc, error) {
	spec, err := c.merged(c.in, c.in.Sub("LaunchTemplate"))
	if err != nil {
		return nil, err
	}
	token := c.in.Str("ClientToken")
	if result, err := c.again(token); result != nil || err != nil {
		return result, err
	}
	l, err := c.prepareAs(spec, "")
	if err != nil {
		return nil, err
	}
	if c.in.Bool("DryRun") {
		return nil, fault("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	things, err := c.start(l, int(c.in.Int("MinCount")), int(c.in.Int("MaxCount")))
	if err != nil {
		return nil, err
	}
	docs := make([]Doc, len(things))
	for i, t := range things {
		docs[i] = maps.Clone(t.tagged())
	}
	result := Doc{"ReservationId": c.w.id("r-"), "OwnerId": c.e.Account, "Instances": docs, "Groups": []Doc{}}
	c.remember(token, result)
	return result, nil
}

// again is the result of a request with the same token.
func (c *call) again(token string) (Doc, error) {
	before, there := c.w.tokens[c.op+token]
	if token == "" || !there {
		return nil, nil
	}
	if before.request != text(c.in) {
		return nil, fault("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
	}
	return before.result, nil
}

func (c *call) remember(token string, result Doc) {
	if token != "" {
		c.w.tokens[c.op+token] = idempotent{text(c.in), result}
	}
}

func text(doc Doc) string {
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err) // documents are of plain values
	}
	return string(data)
}

// merged is a request with what its template says beside.
func (c *call) merged(in, template Doc) (Doc, error) {
	if len(template) == 0 {
		return in, nil
	}
	for _, t := range c.w.of("launch-template") {
		if t.ID == template.Str("LaunchTemplateId") || t.Doc.Str("LaunchTemplateName") == template.Str("LaunchTemplateName") {
			spec := maps.Clone(c.w.templates[t.ID])
			maps.Copy(spec, in)
			return spec, nil
		}
	}
	return nil, fault("InvalidLaunchTemplateId.NotFound", "The specified launch template does not exist.")
}

// prepareAs checks all that names something else.
func (c *call) prepareAs(spec Doc, lifecycle string) (*launch, error) {
	l := &launch{lifecycle: lifecycle, spec: spec, kind: spec.Str("InstanceType"), public: true, groups: spec.Strs("SecurityGroupIds"), ipv6: int(spec.Int("Ipv6AddressCount"))}
	if spec.Str("ImageId") == "" {
		return nil, fault("MissingParameter", "The request must contain the parameter ImageId")
	}
	if l.kind == "" {
		l.kind = "m1.small"
	}
	l.image = c.get("image", spec.Str("ImageId"))
	if l.image == nil {
		return nil, fault("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", spec.Str("ImageId"))
	}
	if l.image.State() != "available" {
		return nil, fault("InvalidAMIID.Unavailable", "The image ID '%s' is not available", l.image.ID)
	}
	kind := c.w.things[l.kind]
	if kind == nil {
		return nil, fault("InvalidParameterValue", "The instance type '%s' does not exist here", l.kind)
	}
	if arch := kind.Doc.Sub("ProcessorInfo")["SupportedArchitectures"].([]string)[0]; arch != l.image.Doc.Str("Architecture") {
		return nil, fault("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.",
			arch, l.image.Doc.Str("Architecture"))
	}
	if name := spec.Str("KeyName"); name != "" && c.get("key-pair", name) == nil {
		return nil, fault("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
	}
	if err := c.profile(spec.Sub("IamInstanceProfile")); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(spec.Str("UserData"))
	if err != nil || len(data) > 16384 {
		return nil, fault("InvalidParameterValue", "Invalid BASE64 encoding of user data, or more than 16384 bytes")
	}
	if err := c.network(l); err != nil {
		return nil, err
	}
	return l, c.market(l)
}

func (c *call) profile(p Doc) error {
	name := p.Str("Name")
	if arn := p.Str("Arn"); arn != "" {
		if name != "" {
			return fault("InvalidParameterCombination", "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'")
		}
		_, name, _ = strings.Cut(arn, ":instance-profile/")
	}
	if len(p) > 0 && name != c.e.Profile {
		return fault("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)
	}
	return nil
}

// network finds the subnet and the groups, of the request itself or of its one interface.
func (c *call) network(l *launch) error {
	subnet := l.spec.Str("SubnetId")
	if interfaces := l.spec.Docs("NetworkInterfaces"); len(interfaces) > 0 {
		if subnet != "" || len(l.groups) > 0 || l.ipv6 > 0 {
			return fault("InvalidParameterCombination",
				"Network interfaces and an instance-level subnet ID, security groups or addresses may not be specified on the same request")
		}
		first := interfaces[0]
		subnet, l.groups, l.ipv6 = first.Str("SubnetId"), first.Strs("Groups"), int(first.Int("Ipv6AddressCount"))
		if first.Has("AssociatePublicIpAddress") {
			l.public = first.Bool("AssociatePublicIpAddress")
		}
	}
	zone := l.spec.Sub("Placement").Str("AvailabilityZone")
	if zone != "" && !slices.Contains(c.e.Zones, zone) {
		return fault("InvalidParameterValue", "Invalid availability zone: [%s]", zone)
	}
	for _, t := range c.w.of("subnet") {
		if t.ID == subnet || subnet == "" && (zone == "" || t.Doc.Str("AvailabilityZone") == zone) {
			l.subnet = t
			break
		}
	}
	if l.subnet == nil {
		return fault("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", subnet)
	}
	if at := l.subnet.Doc.Str("AvailabilityZone"); zone != "" && at != zone {
		return fault("InvalidParameterValue", "The availability zone '%s' does not match the subnet's, '%s'", zone, at)
	}
	for _, group := range l.groups {
		if c.get("security-group", group) == nil {
			return fault("InvalidGroup.NotFound", "The security group '%s' does not exist", group)
		}
	}
	return nil
}

// market tells spot machines and those on dedicated hosts.
func (c *call) market(l *launch) error {
	l.spot = l.lifecycle == "spot" || l.spec.Sub("InstanceMarketOptions").Str("MarketType") == "spot"
	placement := l.spec.Sub("Placement")
	host := placement.Str("HostId")
	if host == "" {
		if strings.HasPrefix(l.kind, "mac") {
			return fault("UnsupportedOperation", "The instance type %s needs a dedicated host", l.kind)
		}
		return nil
	}
	if l.spot {
		return fault("InvalidParameterCombination", "Spot instances do not run on dedicated hosts")
	}
	l.host = c.get("host", host)
	if l.host == nil {
		return c.notFound("host", host)
	}
	if zone := l.host.Doc.Str("AvailabilityZone"); zone != l.subnet.Doc.Str("AvailabilityZone") {
		return fault("InvalidParameterValue", "The host %s is in the zone %s, the subnet is not", host, zone)
	}
	if l.host.Doc.Sub("HostProperties").Str("InstanceType") != l.kind || len(c.onHost(host)) > 0 {
		return fault("InsufficientCapacityOnHost", "There is not enough capacity on the host %s", host)
	}
	return nil
}

// start makes machines where there is room and a quota for them.
func (c *call) start(l *launch, least, most int) ([]*Thing, error) {
	if least < 1 || most < least {
		return nil, fault("InvalidParameterValue", "Invalid value for MinCount and MaxCount: %d, %d", least, most)
	}
	zone := l.subnet.Doc.Str("AvailabilityZone")
	if c.e.faults.noRoom(zone, l.kind) {
		return nil, fault("InsufficientInstanceCapacity",
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", l.kind, zone)
	}
	if err := c.quotaFor(l, most); err != nil {
		return nil, err
	}
	disks, err := c.disks(l)
	if err != nil {
		return nil, err
	}
	allowed := []string{"volume", "network-interface", "spot-instances-request"}
	tags, spec := map[string]map[string]string{}, &call{in: l.spec}
	for _, resource := range append(allowed, "instance") {
		if tags[resource], err = spec.tagsFor(resource, append(allowed, "instance", "fleet", "launch-template")...); err != nil {
			return nil, err
		}
	}
	var things []*Thing
	for i := range most {
		things = append(things, c.machine(l, i, disks, tags))
	}
	return things, nil
}

// quotaFor refuses more processors than the quota has.
func (c *call) quotaFor(l *launch, count int) error {
	if l.host != nil {
		return nil
	}
	code, code2 := "", "VcpuLimitExceeded"
	used, each := 0, 0
	byName := map[string]string{}
	for _, t := range types {
		byName[t.name] = t.quota
		if t.name == l.kind {
			code, each = t.quota, t.vcpus
			if l.spot {
				code, code2 = t.spot, "MaxSpotInstanceCountExceeded"
			}
		}
	}
	for _, t := range c.w.of("instance") {
		other := t.Doc.Str("InstanceType")
		if t.State() == "terminated" || byName[other] != byName[l.kind] || (t.Doc.Str("InstanceLifecycle") == "spot") != l.spot || t.Doc.Sub("Placement").Has("HostId") {
			continue
		}
		used += c.w.things[other].Doc.Sub("VCpuInfo")["DefaultVCpus"].(int)
	}
	limit := c.w.quotas["ec2/"+code]
	if float64(used+each*count) <= limit {
		return nil
	}
	if l.spot {
		return fault(code2, "Max spot instance count exceeded")
	}
	return fault(code2, "You have requested more vCPU capacity than your current vCPU limit of %s allows for the instance bucket that the specified instance type belongs to.",
		strconv.FormatFloat(limit, 'f', -1, 64))
}

func (c *call) onHost(id string) []*Thing {
	var list []*Thing
	for _, t := range c.w.of("instance") {
		if t.Doc.Sub("Placement").Str("HostId") == id && t.State() != "terminated" {
			list = append(list, t)
		}
	}
	return list
}

func addresses(n int) (string, string) {
	return fmt.Sprintf("203.0.113.%d", n%254+1), fmt.Sprintf("10.0.%d.%d", n/250%250, n%250+4)
}
