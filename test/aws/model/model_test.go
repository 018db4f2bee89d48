package model_test

import (
	"errors"
	"maps"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/aws/model"
)

func load(t *testing.T, name string) *model.Service {
	t.Helper()
	s, err := model.Load(name)
	if errors.Is(err, model.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the model does not have is refused as Amazon refuses it.
func TestRequestsThatAreNotOfTheModel(t *testing.T) {
	ec2 := load(t, "ec2")
	for form, want := range map[string]string{
		"Action=RunInstances&MinCount=1&MaxCount=1&Filter.1.Name=x":                            "UnknownParameter",
		"Action=RunInstances&MinCount=1&MaxCount=1&BlockDeviceMapping.1.Ebs.Speed=1":           "UnknownParameter",
		"Action=RunInstances&MinCount=1":                                                       "MissingParameter",
		"Action=RunInstances&MinCount=one&MaxCount=1":                                          "InvalidParameterValue",
		"Action=RunInstances&MinCount=1&MaxCount=1&EbsOptimized=yes":                           "InvalidParameterValue",
		"Action=RunInstances&MinCount=1&MaxCount=1&InstanceType=t3.enormous":                   "InvalidParameterValue",
		"Action=RunInstances&MinCount=1&MaxCount=1&SecurityGroupId.1=sg-1&SecurityGroupId.3=s": "InvalidParameterValue",
		"Action=RunInstances&MinCount=1&MaxCount=1&SecurityGroupId=sg-1":                       "InvalidParameterValue",
		"Action=RunSomething": "InvalidAction",
		"Action=DescribeInstances&Filter.1.Name=tag-key&Filter.1.Value.1=x&InstanceId.1=i-1":              "",
		"Action=DescribeSubnets&Version=2014-01-01":                                                       "InvalidParameterValue",
		"Action=RegisterImage&Name=n&TagSpecification.1.ResourceType=image&TagSpecification.1.Tag.1.Key=": "",
	} {
		if !strings.Contains(form, "Version") {
			form += "&Version=" + ec2.Metadata.APIVersion
		}
		_, _, err := ec2.Request(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), []byte(form))
		said(t, form, err, want)
	}
}

func TestRequestsInHeadersAndBodies(t *testing.T) {
	block := map[string]string{"X-Amz-Data-Length": "524288", "X-Amz-Checksum": strings.Repeat("a", 43) + "=", "X-Amz-Checksum-Algorithm": "SHA256"}
	with := func(name, value string) map[string]string {
		all := map[string]string{}
		maps.Copy(all, block)
		all[name] = value
		return all
	}
	json := map[string]string{"X-Amz-Target": "ServiceQuotasV20190624.ListServiceQuotas", "Content-Type": "application/x-amz-json-1.1"}
	for _, c := range []struct {
		service, method, url, body string
		headers                    map[string]string
		want                       string
	}{
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3", "x", block, ""},
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3?x-id=PutSnapshotBlock", "x", block, ""},
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3?y-id=1", "x", block, "ValidationException"},
		{"ebs", "PUT", "/snapshots/SNAP/blocks/3", "x", block, "ValidationException"},
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3", "x", with("X-Amz-Checksum-Algorithm", "MD5"), "ValidationException"},
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3", "x", with("X-Amz-Colour", "red"), "ValidationException"},
		{"ebs", "PUT", "/snapshots/snap-0a/blocks/3", "x", nil, "ValidationException"},
		{"ebs", "POST", "/snapshots", `{"VolumeSize": 1, "Tags": [{"Key": "a", "Value": "b"}]}`, nil, ""},
		{"ebs", "POST", "/snapshots", `{"VolumeSize": "1"}`, nil, "ValidationException"},
		{"ebs", "POST", "/snapshots", `{"VolumeSize": 1, "Colour": "red"}`, nil, "ValidationException"},
		{"ebs", "POST", "/snapshots", `{}`, nil, "ValidationException"},
		{"ebs", "DELETE", "/snapshots", ``, nil, "MethodNotAllowed"},
		{"s3", "PUT", "/images/a/b%20c?tagging", `<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>`, nil, ""},
		{"s3", "PUT", "/images/a?tagging", `<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>`, nil, "InvalidRequest"},
		{"s3", "PUT", "/images/a?tagging", `<Tagging><TagSet><Label/></TagSet></Tagging>`, nil, "InvalidArgument"},
		{"s3", "GET", "/images?list-type=2&max-keys=many", ``, nil, "InvalidArgument"},
		{"servicequotas", "POST", "/", `{"ServiceCode": "ec2"}`, json, ""},
		{"servicequotas", "POST", "/", `{"ServiceCode": 1}`, json, "ValidationException"},
		{"servicequotas", "POST", "/", `{}`, json, "ValidationException"},
		{"servicequotas", "POST", "/", `{}`, nil, "UnknownOperationException"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		_, _, err := load(t, c.service).Request(r, []byte(c.body))
		said(t, c.method+" "+c.url+" "+c.body, err, c.want)
	}
}

func said(t *testing.T, request string, err error, want string) {
	t.Helper()
	got := ""
	if fault := (*model.Fault)(nil); errors.As(err, &fault) {
		got = fault.Code
		if !fault.Model {
			t.Errorf("%s: the fault does not say that it is of the model", request)
		}
	}
	if got != want {
		t.Errorf("%s: %q (%v), want %q", request, got, err, want)
	}
}

// An answer that the model does not have cannot be sent.
func TestAnswersThatAreNotOfTheModel(t *testing.T) {
	ec2, ebs := load(t, "ec2"), load(t, "ebs")
	instances := func(doc model.Doc) model.Doc {
		return model.Doc{"Reservations": []model.Doc{{"Instances": []model.Doc{doc}}}}
	}
	for _, c := range []struct {
		service *model.Service
		op      string
		answer  model.Doc
		want    string
	}{
		{ec2, "DescribeInstances", instances(model.Doc{"InstanceId": "i-1", "LaunchTime": time.Now()}), ""},
		{ec2, "DescribeInstances", instances(model.Doc{"InstanceID": "i-1"}), "no member DescribeInstances.Reservations.0.Instances.0.InstanceID"},
		{ec2, "DescribeInstances", instances(model.Doc{"InstanceId": 1}), "not a int"},
		{ec2, "DescribeInstances", instances(model.Doc{"LaunchTime": "today"}), "is a timestamp in the model"},
		{ec2, "DescribeInstances", instances(model.Doc{"State": model.Doc{"Name": "booting"}}), "Invalid value 'booting'"},
		{ec2, "DescribeInstances", model.Doc{"Reservations": "none"}, "is a list in the model"},
		{ebs, "StartSnapshot", model.Doc{"SnapshotId": "snap 1"}, "does not match"},
		{load(t, "s3"), "GetObjectTagging", model.Doc{}, "has no TagSet, which the model demands"},
	} {
		_, err := c.service.Answer(c.service.Operations[c.op], c.answer, "1")
		if got := err == nil; got != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.op, c.answer, err, c.want)
		}
	}
}

// What is accepted beside the model of 2022 is needed, and says why.
func TestNewerThanModel(t *testing.T) {
	for _, n := range model.NewerThanModel {
		s := load(t, n.Service)
		if n.Since == "" {
			t.Errorf("%+v: it does not say since when", n)
		}
		if n.Query != "" {
			continue
		}
		if s.Shapes[n.Shape].Members[n.Member].LocationName != n.Ref.LocationName || s.Shapes[n.Ref.Shape] == nil {
			t.Errorf("%+v: the model has it otherwise", n)
		}
	}
	form := url.Values{"TagSpecification.1.ResourceType": {"image"}, "Name": {"a"}}
	doc, err := load(t, "ec2").Query(load(t, "ec2").Operations["RegisterImage"], form)
	if err != nil || doc.Docs("TagSpecifications")[0].Str("ResourceType") != "image" {
		t.Errorf("%v: %v", doc, err)
	}
}
