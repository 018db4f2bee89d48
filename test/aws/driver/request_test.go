package driver_test

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/aws/endpoint"
)

// orderOf is what Amazon was asked for a node: the request, or for a fleet its launch template.
func orderOf(t *testing.T, e *endpoint.Endpoint, operation string, create func() error) endpoint.Doc {
	t.Helper()
	if err := create(); err != nil {
		t.Fatal(err)
	}
	asked := last(e, operation).In
	if operation == "CreateLaunchTemplate" {
		return asked.Sub("LaunchTemplateData")
	}
	return asked
}

// Each key of a label and its pool is in what Amazon is asked for, of an instance as of a fleet.
func TestEachKeyIsAskedFor(t *testing.T) {
	for operation, fleet := range map[string]*configs.AWSFleet{
		"RunInstances": nil, "CreateLaunchTemplate": {InstanceTypes: []string{"m5.large", "c5.large"}, Strategy: "prioritized"},
	} {
		e, _ := amazon(t, configs.AWSImportSnapshot)
		cfg := section(e, configs.AWSImportSnapshot)
		place := &configs.AWSPool{SubnetIDs: e.Subnets[:1], SecurityGroupIDs: []string{e.SecurityGroup}, PublicIPv6: true}
		own := &configs.AWSLabel{
			Fleet: fleet, EBSOptimized: true, VolumeType: "gp3", VolumeSize: 40, IOPS: 4000, Throughput: 250, ProfileName: e.Profile, IMDSv2: "required",
			Tags: map[string]string{"team": "ci"},
		}
		if fleet == nil {
			own.InstanceType = "m5.large"
		}
		cfg.Pools = []configs.Pool{{Name: "all", Settings: place, Labels: []configs.PoolLabel{
			{Name: "keys", CloudImage: "debian", KeyName: e.KeyName, UserData: "#cloud-config\n", Settings: own},
		}}}
		p := open(t, cfg)
		s := spec(e, "all", "keys", 1)
		s.ImageID, s.Metadata["tenant"] = "", "of the request" // dynamic-tags come by this way
		in := orderOf(t, e, operation, func() error { _, err := p.CreateNode(within(t), s); return err })
		newest := e.SeededImages()[2] // of three that its image-filters match
		disk := in.Docs("BlockDeviceMappings")[0].Sub("Ebs")
		card := in.Docs("NetworkInterfaces")[0]
		groups := card.Strs("Groups")
		for what, ok := range map[string]bool{
			"newest image of the filters": in.Str("ImageId") == newest.ID,
			"key-name":                    in.Str("KeyName") == e.KeyName,
			"userdata":                    in.Str("UserData") == base64.StdEncoding.EncodeToString([]byte("#cloud-config\n")),
			"ebs-optimized":               in.Bool("EbsOptimized"),
			"iam-instance-profile":        in.Sub("IamInstanceProfile").Str("Name") == e.Profile,
			"imdsv2":                      in.Sub("MetadataOptions").Str("HttpTokens") == "required",
			"volume-type":                 disk.Str("VolumeType") == "gp3",
			"volume-size":                 disk.Int("VolumeSize") == 40,
			"iops":                        disk.Int("Iops") == 4000,
			"throughput":                  disk.Int("Throughput") == 250,
			"the volume goes, too":        disk.Bool("DeleteOnTermination"),
			"subnet-id":                   card.Str("SubnetId") == e.Subnets[0],
			"security-group-id":           slices.Equal(groups, []string{e.SecurityGroup}),
			"public-ipv4":                 card.Has("AssociatePublicIpAddress") && !card.Bool("AssociatePublicIpAddress"),
			"public-ipv6":                 card.Int("Ipv6AddressCount") == 1,
		} {
			if !ok {
				t.Errorf("%s: %s is not asked for: %v", operation, what, in)
			}
		}
		for _, thing := range append(e.Instances(), e.Volumes()...) {
			if thing.Tags["team"] != "ci" || thing.Tags["tenant"] != "of the request" {
				t.Errorf("%s: %s has the tags %v", operation, thing.ID, thing.Tags)
			}
		}
		_ = p.Close()
	}
}

// Calls that change something are as many a second as rate says, those that read ten times as many; no launch is refused for it.
func TestRateIsKept(t *testing.T) {
	e, _ := amazon(t, configs.AWSImportSnapshot)
	cfg := section(e, configs.AWSImportSnapshot)
	settings, _ := cfg.Settings.(*configs.AWSDriver)
	settings.Rate = 4
	p := open(t, cfg)
	defer p.Close() //nolint:errcheck // nothing is written
	const nodes = 8
	began := time.Now()
	for n := range nodes {
		if _, err := p.CreateNode(within(t), spec(e, "main", "small", n)); err != nil {
			t.Fatal(err)
		}
	}
	// The first four are free, the others come at a distance.
	if took := time.Since(began); e.Count("RunInstances") != nodes || took < (nodes-4)*time.Second/4*9/10 {
		t.Errorf("%d instances in %s", e.Count("RunInstances"), took)
	}
}
