package endpoint

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
)

// run is a request for one machine.
func run(e *Endpoint, more string) string {
	return "Action=RunInstances&MinCount=1&MaxCount=1&InstanceType=t3.medium&ImageId=" + e.SeededImages()[0].ID + more
}

// Something new is not found for a while, and is there all the time.
func TestLag(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{Pace: time.Millisecond})
	c := newClient(e)
	e.Lag(time.Hour)
	if _, code := c.ec2(t, run(e, "")); code != "" {
		t.Fatal(code)
	}
	id := e.Instances()[0].ID
	for _, form := range []string{"Action=DescribeInstances&InstanceId.1=" + id, "Action=TerminateInstances&InstanceId.1=" + id, "Action=CreateTags&ResourceId.1=" + id + "&Tag.1.Key=a"} {
		if _, code := c.ec2(t, form); code != "InvalidInstanceID.NotFound" {
			t.Errorf("%s: %q", form, code)
		}
	}
	if text, code := c.ec2(t, "Action=DescribeInstances"); code != "" || strings.Contains(text, id) {
		t.Errorf("it is listed: %q %s", code, text)
	}
	e.Lag(0)
	zktest.Eventually(t, func() bool {
		text, _ := c.ec2(t, "Action=DescribeInstances&Filter.1.Name=instance-state-name&Filter.1.Value.1=running")
		return strings.Contains(text, id)
	}, "it is listed, and runs")
	snapshot := e.SeededImages()[0]
	e.Lag(time.Hour)
	if _, code := c.ec2(t, "Action=DeregisterImage&ImageId="+snapshot.ID); code != "" {
		t.Fatal(code)
	}
	if text, _ := c.ec2(t, "Action=DescribeImages"); !strings.Contains(text, snapshot.ID) {
		t.Error("an image that was just deleted is not listed any more")
	}
	e.Lag(0)
	if text, _ := c.ec2(t, "Action=DescribeImages"); strings.Contains(text, snapshot.ID) {
		t.Error("a deleted image is listed")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{Pace: time.Millisecond})
	c := newClient(e)
	e.Fail("RunInstances", 1, "RequestLimitExceeded")
	e.NoCapacity(e.Zones[0], "t3.medium")
	e.Quota("ec2", "L-1216C47A", 2)
	steps := []struct{ form, want string }{
		{run(e, ""), "RequestLimitExceeded"},
		{run(e, "&SubnetId="+e.Subnets[0]), "InsufficientInstanceCapacity"},
		{run(e, "&DryRun=true&SubnetId="+e.Subnets[1]), "DryRunOperation"},
		{run(e, "&SubnetId="+e.Subnets[1]), ""},
		{run(e, "&SubnetId="+e.Subnets[1]), "VcpuLimitExceeded"},
		{run(e, "&SubnetId=subnet-0"), "InvalidSubnetID.NotFound"},
		{run(e, "&KeyName=none"), "InvalidKeyPair.NotFound"},
		{run(e, "&SecurityGroupId.1=sg-0"), "InvalidGroup.NotFound"},
		{run(e, "&SecurityGroupId.1=x&NetworkInterface.1.DeviceIndex=0"), "InvalidParameterCombination"},
		{run(e, "&BlockDeviceMapping.1.DeviceName=/dev/xvda&BlockDeviceMapping.1.Ebs.VolumeSize=4&SubnetId="+e.Subnets[1]), "VcpuLimitExceeded"},
		{"Action=AllocateHosts&InstanceType=mac1.metal&Quantity=2&AvailabilityZone=" + e.Zones[0], "HostLimitExceeded"},
		{"Action=DescribeInstances&Filter.1.Name=colour&Filter.1.Value.1=red", "InvalidParameterValue"},
	}
	for _, s := range steps {
		if _, code := c.ec2(t, s.form); code != s.want {
			t.Errorf("%s: %q, want %q", s.form, code, s.want)
		}
	}
	e.Throttle(1)
	if _, code := c.ec2(t, "Action=DescribeSubnets"); code != "RequestLimitExceeded" {
		t.Error(code)
	}
	if _, code := c.do(t, "GET", "/images?list-type=2", "s3", ""); code != "SlowDown" {
		t.Error(code)
	}
}

// An answer that is lost was done, and a token keeps its repetition from being done twice.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{})
	c := newClient(e)
	e.LoseAnswer("RunInstances", 1)
	form := run(e, "&ClientToken=once")
	if _, code := c.ec2(t, form); code != "lost" {
		t.Fatal(code)
	}
	text, code := c.ec2(t, form)
	if list := e.Instances(); code != "" || len(list) != 1 || !strings.Contains(text, list[0].ID) {
		t.Errorf("%q, %v", code, list)
	}
	if _, code := c.ec2(t, form+"&EbsOptimized=true"); code != "IdempotentParameterMismatch" {
		t.Error(code)
	}
}

func TestInterruptionAndPages(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{Pace: time.Millisecond})
	c := newClient(e)
	for range 3 {
		if _, code := c.ec2(t, run(e, "&InstanceMarketOptions.MarketType=spot")); code != "" {
			t.Fatal(code)
		}
	}
	e.Pages(2)
	first, _ := c.ec2(t, "Action=DescribeInstances")
	token := between(first, "<nextToken>", "</nextToken>")
	second, code := c.ec2(t, "Action=DescribeInstances&NextToken="+token)
	if token == "" || code != "" || strings.Count(first, "<instanceId>") != 2 || strings.Count(second, "<instanceId>") != 1 {
		t.Errorf("pages: %q %q\n%s\n%s", token, code, first, second)
	}
	id := e.Instances()[0].ID
	e.Interrupt(id)
	zktest.Eventually(t, func() bool {
		text, _ := c.ec2(t, "Action=DescribeInstances&InstanceId.1="+id)
		return strings.Contains(text, "<code>Server.SpotInstanceTermination</code>") && strings.Contains(text, "<name>terminated</name>")
	}, "it is terminated")
	if n := len(e.Volumes()); n != 2 {
		t.Errorf("%d volumes of two machines", n)
	}
}

// Only what a policy allows is done: what a request makes beside is asked for, too.
func TestAllow(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{})
	c := newClient(e)
	e.Allow("ec2:Run*", "ec2:Describe*")
	tagged := run(e, "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b")
	for form, want := range map[string]string{tagged: "UnauthorizedOperation", run(e, ""): "", "Action=DescribeHosts": "", "Action=DeleteVolume&VolumeId=vol-1": "UnauthorizedOperation"} {
		if _, code := c.ec2(t, form); code != want {
			t.Errorf("%s: %q, want %q", form, code, want)
		}
	}
	if calls := e.Calls(); !slices.Contains(calls, "ec2:CreateTags") || !slices.Contains(calls, "ec2:RunInstances") {
		t.Error(calls)
	}
}

// What the model refuses fails a test that does not expect it, and one that does and never sees it.
func TestRefusedRequestsFailTheTest(t *testing.T) {
	t.Parallel()
	e := Start(t, Options{})
	e.ExpectRefused()
	if _, code := newClient(e).ec2(t, "Action=DescribeSubnets&Colour=red"); code != "UnknownParameter" {
		t.Error(code)
	}
	if n := len(e.refused); n != 1 {
		t.Error(strconv.Itoa(n) + " requests were refused")
	}
}
