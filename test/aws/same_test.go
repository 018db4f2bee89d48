package aws_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/aws/endpoint"
)

// step is one call of a site's life. $ names stand for what exists by then.
type step struct {
	service, operation, params string
	body                       []byte
	// fails is the code of the error that it has to end with.
	fails string
}

var (
	block = bytes.Repeat([]byte("block"), 512<<10/5+1)[:512<<10]
	sum   = sha256.Sum256(block)
	all   = sha256.Sum256(sum[:])
	hash  = base64.StdEncoding.EncodeToString
)

// steps are a site's life: who it is, machines in all ways, images in all ways, quotas, and mistakes.
var steps = []step{
	{service: "sts", operation: "GetCallerIdentity", params: `{}`},
	{service: "sts", operation: "AssumeRole", params: `{"RoleArn": "arn:aws:iam::123456789012:role/images", "RoleSessionName": "test"}`},
	{service: "ec2", operation: "DescribeSubnets", params: `{"Filters": [{"Name": "availability-zone", "Values": ["$zone"]}]}`},
	{service: "ec2", operation: "DescribeImages", params: `{"Owners": ["amazon"], "Filters": [{"Name": "name", "Values": ["debian-12-*"]}]}`},
	{service: "ec2", operation: "RunInstances", params: `{"ImageId": "$seeded", "InstanceType": "t3.medium", "MinCount": 1, "MaxCount": 1, "KeyName": "key",
		"ClientToken": "one", "UserData": "IyEvYmluL3NoCg==", "EbsOptimized": true, "IamInstanceProfile": {"Name": "node"},
		"MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"}, "InstanceMarketOptions": {"MarketType": "spot"},
		"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "Iops": 4000, "Throughput": 200, "DeleteOnTermination": true}}],
		"NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": true, "SubnetId": "$subnet", "Groups": ["$group"], "Ipv6AddressCount": 1}],
		"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "nodepool_node_id", "Value": "1"}]},
			{"ResourceType": "volume", "Tags": [{"Key": "nodepool_node_id", "Value": "1"}]}]}`},
	{service: "ec2", operation: "DescribeInstances", params: `{"Filters": [{"Name": "tag:nodepool_node_id", "Values": ["1"]}, {"Name": "instance-state-name", "Values": ["running"]}]}`},
	{service: "ec2", operation: "DescribeVolumes", params: `{"Filters": [{"Name": "tag-key", "Values": ["nodepool_*"]}]}`},
	{service: "ec2", operation: "DescribeSpotInstanceRequests", params: `{}`},
	{service: "ec2", operation: "GetConsoleOutput", params: `{"InstanceId": "$instance"}`},
	{service: "ec2", operation: "CreateLaunchTemplate", params: `{"LaunchTemplateName": "fleet", "ClientToken": "t", "LaunchTemplateData": {"ImageId": "$seeded", "KeyName": "key"}}`},
	{service: "ec2", operation: "CreateFleet", params: `{"Type": "instant", "ClientToken": "f", "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": {"LaunchTemplateName": "fleet", "Version": "$Default"},
		"Overrides": [{"InstanceType": "p3.2xlarge", "SubnetId": "$subnet"}, {"InstanceType": "c5.large", "SubnetId": "$subnet"}]}],
		"TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}, "OnDemandOptions": {"AllocationStrategy": "prioritized"}}`},
	{service: "ec2", operation: "TerminateInstances", params: `{"InstanceIds": ["$instance"]}`},
	{service: "ec2", operation: "AllocateHosts", params: `{"InstanceType": "mac1.metal", "Quantity": 1, "AvailabilityZone": "$zone", "ClientToken": "h"}`},
	{service: "ec2", operation: "DescribeHosts", params: `{"Filter": [{"Name": "state", "Values": ["available"]}]}`},
	{service: "s3", operation: "PutObject", params: `{"Bucket": "images", "Key": "a/b c+d.raw", "Tagging": "nodepool_build_id=1"}`, body: []byte("image")},
	{service: "s3", operation: "ListObjectsV2", params: `{"Bucket": "images", "Prefix": ""}`},
	{service: "s3", operation: "GetObjectTagging", params: `{"Bucket": "images", "Key": "a/b c+d.raw"}`},
	{service: "ec2", operation: "ImportSnapshot", params: `{"ClientToken": "i", "RoleName": "vmimport", "DiskContainer": {"Format": "raw", "UserBucket": {"S3Bucket": "images", "S3Key": "a/b c+d.raw"}}}`},
	{service: "ec2", operation: "DescribeImportSnapshotTasks", params: `{"Filters": [{"Name": "task-state", "Values": ["completed"]}]}`},
	{service: "ec2", operation: "RegisterImage", params: `{"Name": "image-1", "Architecture": "x86_64", "RootDeviceName": "/dev/sda1", "VirtualizationType": "hvm", "EnaSupport": true, "ImdsSupport": "v2.0",
		"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": "$snapshot", "VolumeType": "gp3", "DeleteOnTermination": true}}]}`},
	{service: "ec2", operation: "CreateTags", params: `{"Resources": ["$image"], "Tags": [{"Key": "nodepool_upload_id", "Value": "1"}]}`},
	{service: "ec2", operation: "DescribeImages", params: `{"Owners": ["self"], "Filters": [{"Name": "tag-key", "Values": ["nodepool_upload_id"]}]}`},
	{service: "ec2", operation: "ImportImage", params: `{"ClientToken": "j", "Architecture": "x86_64", "DiskContainers": [{"Format": "vmdk", "UserBucket": {"S3Bucket": "images", "S3Key": "a/b c+d.raw"}}]}`},
	{service: "ec2", operation: "DescribeImportImageTasks", params: `{}`},
	{service: "ebs", operation: "StartSnapshot", params: `{"VolumeSize": 1, "ParentSnapshotId": "$snapshot", "ClientToken": "s", "Tags": [{"Key": "a", "Value": "b"}]}`},
	{service: "ebs", operation: "PutSnapshotBlock", params: `{"SnapshotId": "$last", "BlockIndex": 3, "DataLength": 524288, "Checksum": "$sum", "ChecksumAlgorithm": "SHA256"}`, body: block},
	{service: "ebs", operation: "CompleteSnapshot", params: `{"SnapshotId": "$last", "ChangedBlocksCount": 1, "Checksum": "$all", "ChecksumAlgorithm": "SHA256", "ChecksumAggregationMethod": "LINEAR"}`},
	{service: "ebs", operation: "ListChangedBlocks", params: `{"FirstSnapshotId": "$snapshot", "SecondSnapshotId": "$last"}`},
	{service: "ec2", operation: "DescribeSnapshots", params: `{"OwnerIds": ["self"], "Filters": [{"Name": "tag:a", "Values": ["b"]}]}`},
	{service: "service-quotas", operation: "ListServiceQuotas", params: `{"ServiceCode": "ec2"}`},
	{service: "service-quotas", operation: "GetServiceQuota", params: `{"ServiceCode": "ebs", "QuotaCode": "L-0"}`, fails: "NoSuchResourceException"},
	{service: "ec2", operation: "DeleteSnapshot", params: `{"SnapshotId": "$snapshot"}`, fails: "InvalidSnapshot.InUse"},
	{service: "ec2", operation: "DescribeInstances", params: `{"InstanceIds": ["i-00000000000000000"]}`, fails: "InvalidInstanceID.NotFound"},
	{service: "s3", operation: "DeleteObject", params: `{"Bucket": "images", "Key": "a/b c+d.raw"}`},
	{service: "s3", operation: "GetObjectTagging", params: `{"Bucket": "images", "Key": "a/b c+d.raw"}`, fails: "NoSuchKey"},
	{service: "ec2", operation: "DeregisterImage", params: `{"ImageId": "$image"}`},
}

// named are what the $ names stand for now.
func named(e *endpoint.Endpoint, text string) map[string]any {
	first := func(things []endpoint.Thing) string {
		if len(things) == 0 {
			return "none"
		}
		return things[0].ID
	}
	snapshots := e.Snapshots()
	names := []string{
		"$zone", e.Zones[1], "$subnet", e.Subnets[1], "$group", e.SecurityGroup, "$seeded", e.SeededImages()[0].ID, "$instance", first(e.Instances()),
		"$snapshot", first(snapshots), "$image", first(e.Images()), "$last", first(snapshots[max(0, len(snapshots)-1):]), "$sum", hash(sum[:]), "$all", hash(all[:]),
	}
	params := map[string]any{}
	if err := json.Unmarshal([]byte(strings.NewReplacer(names...).Replace(text)), &params); err != nil {
		panic(err)
	}
	return params
}

// live lives through all steps, and gives the answers without times.
func live(t *testing.T, e *endpoint.Endpoint, c client) []any {
	t.Helper()
	var answers []any
	for _, s := range steps {
		answer, code := c.call(s.service, s.operation, named(e, s.params), s.body)
		if code != s.fails {
			t.Fatalf("%s %s: %q, want %q", s.operation, s.params, code, s.fails)
		}
		if s.operation == "ListObjectsV2" {
			delete(answer, "Name")
		}
		answers = append(answers, []any{s.operation, bare(answer)})
		<-time.After(10 * time.Millisecond) // machines boot and imports end, which takes 1 ms here
	}
	return answers
}

var aTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)

// bare is an answer without what is empty, and without what differs with the clock.
func bare(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, item := range v {
			// The command asks for all pages, and leaves out what tells of one.
			if item = bare(item); item == nil || slices.Contains([]string{"EncodingType", "KeyCount", "MaxKeys", "IsTruncated"}, name) {
				delete(v, name)
			} else {
				v[name] = item
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = bare(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
		if aTime.MatchString(v) {
			return "a time"
		}
		return strings.Trim(v, `"`)
	}
	return value
}

// The same calls by the SDK, by Amazon's command and by boto3, each at an endpoint of its own, are answered the same.
func TestClientsAgree(t *testing.T) {
	clientsNeeded(t)
	t.Parallel()
	start := func(t *testing.T) *endpoint.Endpoint {
		t.Helper()
		return endpoint.Start(t, endpoint.Options{Pace: time.Millisecond})
	}
	e := start(t)
	want := live(t, e, newPython(t, e))
	e = start(t)
	if diff := cmp.Diff(want, live(t, e, newSDK(t, e))); diff != "" {
		t.Errorf("the SDK is answered otherwise (+) than boto3 (-):\n%s", diff)
	}
	e = start(t)
	if diff := cmp.Diff(want, live(t, e, newCommand(t, e))); diff != "" {
		t.Errorf("Amazon's command is answered otherwise (+) than boto3 (-):\n%s", diff)
	}
}
