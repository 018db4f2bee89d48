package aws

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// operations are those whose answers are replaced.
var operations = []string{
	"DescribeInstances", "DescribeImages", "ListServiceQuotas", "DescribeInstanceTypes", "DescribeImportImageTasks", "DescribeImportSnapshotTasks", "GetConsoleOutput",
	"TerminateInstances", "DeregisterImage", "DescribeVolumes", "DescribeSnapshots", "DescribeHosts", "ReleaseHosts", "DescribeLaunchTemplates", "ListObjectsV2", "GetObjectTagging",
	"ListMultipartUploads", "DeleteSnapshot", "DeleteVolume",
}

// seeds are answers that lie, or are none.
func seeds(operation string) []string {
	answer := usual[operation]
	page := func(token string) string { // one that another follows, for ever
		if i := strings.LastIndex(answer, "</"); i >= 0 {
			return answer[:i] + token + answer[i:]
		}
		return answer
	}
	list := []string{answer, "", "{}", "null", "<html><h1>502</h1></html>", "\xff", "<a/>", answer[:len(answer)/2]}
	if strings.HasPrefix(operation, "ListService") {
		return append(list, `{"Quotas": null}`, `{"Quotas": [{}]}`, `{"Quotas": [], "NextToken": "x"}`, `{"Quotas": [{"QuotaCode": "L-1216C47A", "Value": 1e300}]}`,
			`{"Quotas": [{"QuotaCode": "L-1216C47A", "Value": "NaN"}]}`, `{"Quotas": [{"QuotaCode": "L-1216C47A", "Value": -1e300}]}`)
	}
	list = append(list, page("<nextToken>x</nextToken>"), page("<NextContinuationToken>x</NextContinuationToken><IsTruncated>true</IsTruncated>"),
		page("<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker><IsTruncated>true</IsTruncated>"))
	for _, lie := range [][2]string{
		{"aaa<", "ddd<"},
		{ourNode, ""},
		{ourImage, ""},
		{"north", "south"},
		{">2<", ">-2147483648<"},
		{"running", "terminated"},
		{"running", "stopped"},
		{"<value>a", "<value>b"},
		{"vol-a", ""},
		{"h-a", ""},
		{"lt-a", ""},
		{"snap-0a1", ""},
		{"t3.small", "t3.large"},
	} {
		if other := strings.ReplaceAll(answer, lie[0], lie[1]); other != answer {
			list = append(list, other)
		}
	}
	return list
}

// FuzzAnswers: whatever Amazon answers, a list is what it says or an error, never what it does not say: an empty list gives
// up all that is there. It ends, however often a page has a next one. Nothing is deleted but what was to be, or what an answer tells is
// ours; an error is of the contract, short, of one line, and without our keys.
func FuzzAnswers(f *testing.F) {
	for which, operation := range operations {
		for _, body := range seeds(operation) {
			f.Add(uint8(which), 200, []byte(body))
		}
		for _, code := range []string{"InvalidInstanceID.NotFound", "RequestLimitExceeded", "UnauthorizedOperation", "VcpuLimitExceeded", ""} {
			f.Add(uint8(which), 400, []byte("<Response><Errors><Error><Code>"+code+"</Code><Message>a\nb "+password+"</Message></Error></Errors></Response>"))
		}
		f.Add(uint8(which), 404, []byte("<Error><Code>NoSuchKey</Code><Message>\x1b[31m</Message></Error>"))
		f.Add(uint8(which), 503, []byte(`{"__type": "x", "message": "`+strings.Repeat("y", 5000)+`"}`))
	}
	a := &amazon{most: 200}
	p, own := openOn(f, a)
	f.Fuzz(func(t *testing.T, which uint8, status int, body []byte) {
		operation := operations[int(which)%len(operations)]
		if status < 200 || status > 599 {
			status = 200 + int(uint(status)%400)
		}
		one := &trial{t, p, a, &fast{began: time.Now()}}
		for _, read := range reads {
			if !slices.Contains(strings.Fields(read.asks), operation) {
				continue
			}
			own.forgetAll()
			ctx, cancel := within(t.Context(), one.clock, read.name == "wait" || read.name == "delete node")
			a.set(operation, status, body, cancel)
			err := read.read(ctx, one)
			cancel()
			judge(t, read.name, err)
			one.deletions(read.name)
		}
	})
}

// trial is one answer, with what was made of it.
type trial struct {
	*testing.T
	p     providers.Provider
	a     *amazon
	clock *fast
}

// reads are what daemons ask a provider for, and what it asks Amazon for then.
var reads = []struct {
	name string
	asks string
	read func(context.Context, *trial) error
}{
	{"list nodes", "DescribeInstances", func(ctx context.Context, t *trial) error {
		list, err := t.p.ListNodes(ctx)
		for _, one := range list {
			t.item(one.ExternalID, one.Metadata)
		}
		t.says("DescribeInstances", "instanceid", len(list), err)
		return err
	}},
	{"list images", "DescribeImages DescribeImportImageTasks", func(ctx context.Context, t *trial) error {
		list, err := t.p.ListImages(ctx)
		for _, one := range list {
			t.item(one.ExternalID, one.Metadata)
		}
		t.says("DescribeImages", "imageid", len(list), err)
		t.says("DescribeImportImageTasks", "", 0, err)
		return err
	}},
	{"limits", "ListServiceQuotas DescribeInstances DescribeInstanceTypes", func(ctx context.Context, t *trial) error {
		limits, err := t.p.Limits(ctx, nil)
		t.amounts(limits)
		t.says("ListServiceQuotas", "", 0, err)
		t.says("DescribeInstances", "", 0, err)
		return err
	}},
	{"size", "DescribeInstanceTypes", func(ctx context.Context, t *trial) error {
		takes, err := t.p.NodeResources(ctx, "main", "small")
		t.amounts(takes)
		if errors.Is(err, providers.ErrInvalid) { // it is declined for ever
			t.says("DescribeInstanceTypes", "", 0, nil)
		}
		return err
	}},
	{"wait", "DescribeInstances", func(ctx context.Context, t *trial) error {
		instance, err := t.p.WaitNode(ctx, ourNode)
		if err == nil && (instance.ExternalID != ourNode || instance.InterfaceIP == "") {
			t.Errorf("who waits for %s gets %q at %q", ourNode, instance.ExternalID, instance.InterfaceIP)
		}
		return err
	}},
	{"console", "GetConsoleOutput", func(ctx context.Context, t *trial) error {
		text, err := t.p.ConsoleLog(ctx, ourNode, 10)
		if len(text) > 10 {
			t.Errorf("the console's last 10 bytes are %d", len(text))
		}
		return err
	}},
	{"delete node", "DescribeInstances TerminateInstances", func(ctx context.Context, t *trial) error {
		err := t.p.DeleteNode(ctx, ourNode)
		if err == nil && !slices.ContainsFunc(t.a.all(), func(one asked) bool { return one.operation == "TerminateInstances" && one.id == ourNode }) {
			t.Error("a node was not deleted")
		}
		if t.a.served("TerminateInstances") == usual["TerminateInstances"] {
			t.says("DescribeInstances", "", 0, err)
		}
		return err
	}},
	{"delete image", "DescribeImages DeregisterImage DeleteSnapshot", func(ctx context.Context, t *trial) error {
		err := t.p.DeleteImage(ctx, ourImage)
		t.says("DescribeImages", "", 0, err)
		return err
	}},
	{"leaks", "DescribeVolumes DeleteVolume DescribeHosts ReleaseHosts DescribeLaunchTemplates DescribeImages DescribeSnapshots DeleteSnapshot DescribeImportImageTasks DescribeImportSnapshotTasks ListObjectsV2 GetObjectTagging ListMultipartUploads", func(ctx context.Context, t *trial) error {
		cleaner, _ := t.p.(providers.Cleaner)
		_, first := cleaner.CleanLeaks(ctx, ourSite)
		t.clock.ahead += 2 * leakAgeEndless
		_, err := cleaner.CleanLeaks(ctx, ourSite)
		return errors.Join(first, err)
	}},
}

// item fails for what a list must not have.
func (t *trial) item(id string, metadata map[string]string) {
	t.Helper()
	if id == "" || metadata[providers.MetaProvider] != "north" {
		t.Errorf("listed is %q of %v", id, metadata)
	}
}

// amounts fails for those that nothing has.
func (t *trial) amounts(all providers.Resources) {
	t.Helper()
	for name, n := range all {
		if n < 0 || n > math.MaxInt-1<<40 {
			t.Errorf("%s are %d", name, n)
		}
	}
}

// says fails for a list that was taken from an answer that has none, or fewer.
func (t *trial) says(operation, element string, entries int, err error) {
	t.Helper()
	if err != nil || t.a.status > 299 && t.a.instead == operation {
		return // refused, or said to be gone
	}
	served, count := t.a.served(operation), 0
	treeOf([]byte(served)).each(func(one *tree) {
		if one.name == element {
			count++
		}
	})
	if !isList(operation, []byte(served)) || element != "" && entries > count {
		t.Errorf("%s: %d entries, and no error, of %q", operation, entries, served)
	}
}

// judge fails for an error that an operator cannot use, or should not see.
func judge(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok && name == "leaks" {
		for _, one := range all.Unwrap() {
			judge(t, name, one)
		}
		return
	}
	known := false
	for _, one := range []error{
		providers.ErrInvalid, providers.ErrNotFound, providers.ErrQuota, providers.ErrTransient, providers.ErrUnusable, providers.ErrNodeFailed, context.DeadlineExceeded,
	} {
		known = known || errors.Is(err, one)
	}
	text := err.Error()
	if !known || len(text) > mostWords+500 || strings.ContainsAny(text, "\n\x00\x1b") || strings.Contains(text, password) || !strings.Contains(text, "north") {
		t.Errorf("%s: the error %q", name, text)
	}
}

// deletions fails for one of what need not be ours, and for calls without an end.
func (t *trial) deletions(reading string) {
	t.Helper()
	all := t.a.all()
	if len(all) >= t.a.most {
		t.Errorf("%s: asked %d times, the last time %+v", reading, len(all), all[len(all)-1])
	}
	for _, one := range all {
		if !isDeletion(one.operation) {
			continue
		}
		if !t.may(reading, one) {
			t.Errorf("%s: %s %q, which no answer tells to be ours", reading, one.operation, one.id)
		}
	}
}

// may reports whether something may be deleted.
func (t *trial) may(reading string, one asked) bool {
	told := func(operations ...string) bool {
		return one.id != "" && slices.ContainsFunc(operations, func(operation string) bool { return tell([]byte(t.a.served(operation)), one.id) })
	}
	switch one.operation {
	case "TerminateInstances":
		return one.id == ourNode // or of before, and late
	case "DeregisterImage":
		return reading == "delete image" && one.id == ourImage
	case "DeleteSnapshot":
		if reading == "delete image" {
			return madeOf(t.a.served("DescribeImages"), one.id)
		}
		return told("DescribeImages", "DescribeSnapshots", "DescribeImportSnapshotTasks", "DescribeImportImageTasks")
	case "DeleteVolume":
		return reading == "leaks" && told("DescribeVolumes")
	case "ReleaseHosts":
		return told("DescribeHosts")
	case "DeleteLaunchTemplate":
		return reading == "leaks" && told("DescribeLaunchTemplates")
	case "AbortMultipartUpload":
		return reading == "leaks" && strings.HasPrefix(one.id, (&Provider{cfg: configs.Provider{Name: "north"}}).ownPrefix(ourSite))
	case "DeleteObject":
		return reading == "leaks" && one.id != "" && treeOf([]byte(t.a.served("GetObjectTagging"))).ours()
	}
	return false
}
