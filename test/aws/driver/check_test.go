package driver_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
)

// told are what CheckCloud tells, each with the first key.
func told(t *testing.T, cfg configs.Provider) (list []string, err error) {
	t.Helper()
	p := open(t, cfg)
	defer p.Close() //nolint:errcheck // nothing is written
	missing, err := p.CheckCloud(within(t))
	for _, m := range missing {
		list = append(list, m.Keys[0]+": "+m.Message)
	}
	return list, err
}

// An account that has all lacks nothing, and is changed by no question.
func TestCheckOfAllThatIsThere(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		e, _ := amazon(t, method)
		e.Pages(1)
		list, err := told(t, section(e, method))
		if err != nil || len(list) > 0 {
			t.Errorf("%s: it lacks %s: %v", method, strings.Join(list, "; "), err)
		}
		if made := len(e.Instances()) + len(e.Images()) + len(e.Snapshots()) + len(e.Volumes()) + len(e.Hosts()) + len(e.Templates()) + len(e.Objects(e.Bucket)) + len(e.Uploads()); made > 0 {
			t.Errorf("%s: %d things were made", method, made)
		}
	}
}

// Each thing that a section names and an account does not have is told, with its key.
func TestCheckOfWhatIsMissing(t *testing.T) {
	e, _ := amazon(t, configs.AWSImportSnapshot)
	e.Quota("ec2", "L-A8448DC5", 0)
	cfg := section(e, configs.AWSImportSnapshot)
	cfg.Settings.(*configs.AWSDriver).Bucket = "no-such-bucket"
	cfg.CloudImages = append(cfg.CloudImages,
		configs.CloudImage{Name: "old", ImageID: "ami-0123456789abcdef0", Settings: &configs.AWSCloudImage{}},
		configs.CloudImage{Name: "none", Settings: &configs.AWSCloudImage{Filters: []configs.AWSFilter{{Name: "name", Values: []string{"plan9-*"}}}}},
		configs.CloudImage{Name: "odd", Settings: &configs.AWSCloudImage{Filters: []configs.AWSFilter{{Name: "colour", Values: []string{"red"}}}}},
	)
	cloud := func(name string, own configs.AWSLabel) configs.PoolLabel {
		return configs.PoolLabel{Name: name, CloudImage: "debian", KeyName: e.KeyName, Settings: &own}
	}
	other := cloud("nokey", configs.AWSLabel{InstanceType: "t3.small"})
	other.KeyName = "lost"
	cfg.Pools = append(cfg.Pools, configs.Pool{
		Name: "wrong", AvailabilityZones: []string{e.Zones[0], "mars-1a"},
		Settings: &configs.AWSPool{SubnetIDs: []string{e.Subnets[0], "subnet-0"}, SecurityGroupIDs: []string{"sg-0"}},
		Labels: []configs.PoolLabel{
			other, cloud("notype", configs.AWSLabel{InstanceType: "x1.32xlarge"}),
			cloud("fleet", configs.AWSLabel{Fleet: &configs.AWSFleet{InstanceTypes: []string{"t3.small", "x1.32xlarge"}, Strategy: "lowest-price"}}),
		},
	}, configs.Pool{
		Name: "apart", AvailabilityZones: e.Zones[1:2], Settings: &configs.AWSPool{SubnetIDs: e.Subnets[:1]},
		Labels: []configs.PoolLabel{cloud("any", configs.AWSLabel{InstanceType: "t3.small"})},
	}, configs.Pool{Name: "refused", Settings: &configs.AWSPool{}, Labels: []configs.PoolLabel{
		cloud("profile", configs.AWSLabel{InstanceType: "t3.small", ProfileName: "nobody"}),
		cloud("arm", configs.AWSLabel{InstanceType: "m6g.large"}),
	}})
	list, err := told(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`pools[wrong].availability-zones[1]: the region has no availability zone "mars-1a", it has eu-central-1a, eu-central-1b`,
		`pools[wrong].subnet-ids[1]: the region has no subnet "subnet-0"`,
		`pools[wrong].security-group-ids[0]: the region has no security group "sg-0"`,
		`pools[apart].subnet-ids: none of the subnets is in eu-central-1b`,
		`pools[wrong].labels[nokey].key-name: the region has no key pair "lost", it has key`,
		`pools[wrong].labels[notype].instance-type: no zone of the region has the instance type "x1.32xlarge"`,
		`pools[wrong].labels[fleet].instance-type: no zone of the region has the instance type "x1.32xlarge"`,
		`cloud-images[old].image-id: there is no image ami-0123456789abcdef0 that can be used`,
		`cloud-images[none].image-filters: no image that can be used matches the image-filters`,
		`cloud-images[odd].image-filters: Amazon refuses the image-filters: InvalidParameterValue: The filter 'colour' is invalid`,
		`object-storage.bucket-name: there is no bucket "no-such-bucket"`,
		`pools[refused].labels[profile]: Amazon refuses its instance, so that each launch would fail: InvalidParameterValue: Value (nobody) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name`,
		`pools[refused].labels[arm]: Amazon refuses its instance, so that each launch would fail: InvalidParameterValue: The architecture 'arm64' of the specified instance type`,
		`pools[hosts].labels[mac].instance-type: a node takes 1 of the quota L-A8448DC5 (Running Dedicated mac1 Hosts), which is 0`,
	}
	for i, line := range list {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is %s", i, line)
		}
	}
	if len(list) != len(want) {
		t.Errorf("%d lines, want %d", len(list), len(want))
	}
}

// Each right that is lacking is told by its name, and the rest is looked at all the same.
func TestCheckOfRights(t *testing.T) {
	for _, method := range []string{configs.AWSImportSnapshot, configs.AWSImportEBSDirect, configs.AWSImportImage} {
		e, _ := amazon(t, method)
		cfg := section(e, method)
		_, _ = told(t, cfg)
		for _, action := range e.Calls() {
			if action == "sts:GetCallerIdentity" {
				continue // that is nobody refused
			}
			e.Allow(slices.DeleteFunc(e.Calls(), func(one string) bool { return one == action })...)
			list, err := told(t, cfg)
			if err != nil || !slices.ContainsFunc(list, func(line string) bool {
				return strings.Contains(line, action) || strings.HasPrefix(action, "s3:") && strings.HasPrefix(line, "object-storage")
			}) {
				t.Errorf("%s: without %s it tells %s: %v", method, action, strings.Join(list, "; "), err)
			}
		}
	}
}

// A log-in that is refused, and an endpoint that does not answer, are no lack of what is named.
func TestCheckOfAnAccountThatCannotBeAsked(t *testing.T) {
	e, _ := amazon(t, configs.AWSImportSnapshot)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-is-wrong")
	list, err := told(t, section(e, configs.AWSImportSnapshot))
	if err == nil || len(list) > 0 || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || strings.Contains(err.Error(), "a-secret") {
		t.Errorf("%v, %v", list, err)
	}
	e.Env(t)
	e.Fail("DescribeKeyPairs", 1000, "InternalError")
	cfg := section(e, configs.AWSImportSnapshot)
	cfg.Pools[0].Settings.(*configs.AWSPool).SecurityGroupIDs = []string{"sg-0"}
	p := openPatient(t, cfg, 10*time.Millisecond)
	missing, err := p.CheckCloud(within(t))
	if err == nil || !strings.Contains(err.Error(), "list key pairs") || len(missing) != 1 || missing[0].Keys[0] != "pools[main].security-group-ids[0]" {
		t.Errorf("%v, %v", missing, err)
	}
	if n := e.Count("DescribeKeyPairs"); n != 3 {
		t.Errorf("it was asked %d times", n)
	}
}
