package endpoint

import (
	"fmt"
	"maps"
	"time"
)

// types are the kinds of machines that can be had.
var types = []struct {
	name   string
	vcpus  int
	memory int
	arch   string
	quota  string // of machines on demand
	spot   string
}{
	{"t3.small", 2, 2048, "x86_64", "L-1216C47A", "L-34B43A08"},
	{"t3.medium", 2, 4096, "x86_64", "L-1216C47A", "L-34B43A08"},
	{"m5.large", 2, 8192, "x86_64", "L-1216C47A", "L-34B43A08"},
	{"c5.large", 2, 4096, "x86_64", "L-1216C47A", "L-34B43A08"},
	{"m6g.large", 2, 8192, "arm64", "L-1216C47A", "L-34B43A08"},
	{"p3.2xlarge", 8, 62464, "x86_64", "L-417A185B", "L-7212CCBC"},
	{"mac1.metal", 12, 32768, "x86_64_mac", "", ""},
}

// newWorld is what an account has before anything is asked for.
func newWorld(e *Endpoint) *world {
	w := &world{
		e: e, things: map[string]*Thing{}, buckets: map[string]map[string]*object{}, uploads: map[string]*upload{}, tokens: map[string]idempotent{}, templates: map[string]Doc{},
		keys:    map[string]key{e.AccessKey: {name: "arn:aws:iam::" + e.Account + ":user/test", secret: e.SecretKey}},
		bearers: map[string]bool{e.BearerToken: true},
		quotas: map[string]float64{
			"ec2/L-1216C47A": 64, "ec2/L-34B43A08": 64, "ec2/L-417A185B": 16, "ec2/L-7212CCBC": 16, "ec2/L-A8448DC5": 1,
			"ebs/L-7A658B76": 50, "ebs/L-D18FCD1D": 50,
		},
	}
	start := time.Time{} // nothing of this lags
	e.VPC = w.id("vpc-")
	for i, letter := range "ab" {
		zone := e.Region + string(letter)
		subnet := w.add(start, "subnet", w.id("subnet-"), nil, Doc{
			"AvailabilityZone": zone, "VpcId": e.VPC, "CidrBlock": fmt.Sprintf("10.0.%d.0/24", i), "State": "available", "DefaultForAz": true,
			"MapPublicIpOnLaunch": true, "OwnerId": e.Account, "AvailableIpAddressCount": 251,
			"Ipv6CidrBlockAssociationSet": []Doc{{
				"AssociationId": "subnet-cidr-assoc-0", "Ipv6CidrBlock": fmt.Sprintf("2001:db8:%d::/64", i), "Ipv6CidrBlockState": Doc{"State": "associated"},
			}},
		})
		e.Zones, e.Subnets = append(e.Zones, zone), append(e.Subnets, subnet.ID)
	}
	e.SecurityGroup = w.add(start, "security-group", w.id("sg-"), nil, Doc{
		"GroupName": "default", "Description": "default", "VpcId": e.VPC, "OwnerId": e.Account,
	}).ID
	w.add(start, "key-pair", e.KeyName, nil, Doc{"KeyName": e.KeyName, "KeyPairId": "key-00000000000000001", "KeyFingerprint": "00:11", "KeyType": "ed25519"})
	w.buckets[e.Bucket] = map[string]*object{}
	for _, t := range types {
		w.add(start, "instance-type", t.name, nil, Doc{
			"InstanceType": t.name, "VCpuInfo": Doc{"DefaultVCpus": t.vcpus}, "MemoryInfo": Doc{"SizeInMiB": t.memory}, "BareMetal": t.name == "mac1.metal",
			"ProcessorInfo": Doc{"SupportedArchitectures": []string{t.arch}}, "CurrentGeneration": true, "DedicatedHostsSupported": true,
		})
	}
	w.seedImages()
	return w
}

// seedImages are those of others, and one of our own, of several days.
func (w *world) seedImages() {
	for i, owner := range []string{w.e.Account, "137112412989", "137112412989"} {
		size := 8
		snapshot := w.add(time.Time{}, "snapshot", w.id("snap-"), nil, Doc{
			"OwnerId": owner, "State": "completed", "Progress": "100%", "VolumeSize": size, "StartTime": time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC),
			"Encrypted": false, "Description": "", "VolumeId": "vol-ffffffff",
		})
		alias := Doc{}
		if owner != w.e.Account {
			alias["ImageOwnerAlias"], snapshot.Doc["OwnerAlias"] = "amazon", "amazon"
		}
		name := fmt.Sprintf("debian-12-amd64-2026010%d-1", 1+i)
		doc := Doc{
			"Name": name, "Architecture": "x86_64", "CreationDate": fmt.Sprintf("2026-01-0%dT00:00:00.000Z", 1+i), "OwnerId": owner, "State": "available",
			"ImageLocation": owner + "/" + name, "ImageType": "machine", "Public": owner != w.e.Account, "Hypervisor": "xen", "VirtualizationType": "hvm",
			"RootDeviceName": "/dev/xvda", "RootDeviceType": "ebs", "EnaSupport": true, "PlatformDetails": "Linux/UNIX", "UsageOperation": "RunInstances",
			"BlockDeviceMappings": []Doc{{"DeviceName": "/dev/xvda", "Ebs": Doc{
				"SnapshotId": snapshot.ID, "VolumeSize": size, "VolumeType": "gp3", "DeleteOnTermination": true, "Encrypted": false,
			}}},
		}
		maps.Copy(doc, alias)
		w.add(time.Time{}, "image", w.id("ami-"), nil, doc)
	}
}
