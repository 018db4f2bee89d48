package aws

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

const (
	password  = "Tr0ub4dor-and-3"
	ourSite   = "a"
	ourNode   = "i-00000000000000aaa"
	theirNode = "i-00000000000000bbb"
	ourImage  = "ami-00000000000000aaa"
)

// ownTags and theirTags are those of what our installation made, and of what another one made that calls its provider alike.
const (
	ownTags = `<tagSet><item><key>nodepool_provider_name</key><value>north</value></item><item><key>poolkeeper_site</key><value>a</value></item>` +
		`<item><key>nodepool_node_id</key><value>1</value></item><item><key>nodepool_upload_id</key><value>1</value></item></tagSet>`
	theirTags = `<tagSet><item><key>nodepool_provider_name</key><value>north</value></item><item><key>poolkeeper_site</key><value>b</value></item>` +
		`<item><key>nodepool_node_id</key><value>1</value></item><item><key>nodepool_upload_id</key><value>1</value></item></tagSet>`
)

// usual are answers of an account in which all is well, one of each kind ours and one another installation's; and an instance of nobody's.
var usual = map[string]string{
	"DescribeInstances": `<DescribeInstancesResponse><reservationSet><item><instancesSet>` +
		`<item><instanceId>` + ourNode + `</instanceId><instanceState><name>running</name></instanceState><instanceType>t3.small</instanceType><privateIpAddress>10.0.0.1</privateIpAddress>` + ownTags + `</item>` +
		`<item><instanceId>` + theirNode + `</instanceId><instanceState><name>running</name></instanceState><instanceType>t3.small</instanceType>` + theirTags + `</item>` +
		`<item><instanceId>i-00000000000000ccc</instanceId><instanceState><name>running</name></instanceState><instanceType>t3.small</instanceType></item>` +
		`</instancesSet></item></reservationSet></DescribeInstancesResponse>`,
	"DescribeImages": `<DescribeImagesResponse><imagesSet><item><imageId>` + ourImage + `</imageId><imageState>available</imageState><blockDeviceMapping><item><ebs><snapshotId>snap-0a1</snapshotId></ebs></item></blockDeviceMapping>` +
		ownTags + `</item><item><imageId>ami-00000000000000bbb</imageId><name>known</name><imageState>available</imageState>` + theirTags + `</item></imagesSet></DescribeImagesResponse>`,
	"DescribeInstanceTypes": `<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>t3.small</instanceType><vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo>` +
		`<memoryInfo><sizeInMiB>2048</sizeInMiB></memoryInfo></item></instanceTypeSet></DescribeInstanceTypesResponse>`,
	"ListServiceQuotas": `{"Quotas": [{"QuotaCode": "L-1216C47A", "QuotaName": "Running On-Demand Standard", "Value": 64}]}`,
	"DescribeImportImageTasks": `<DescribeImportImageTasksResponse><importImageTaskSet><item><importTaskId>t</importTaskId><status>completed</status><imageId>ami-00000000000000ccc</imageId>` +
		ownTags + `</item></importImageTaskSet></DescribeImportImageTasksResponse>`,
	"DescribeImportSnapshotTasks": `<DescribeImportSnapshotTasksResponse><importSnapshotTaskSet><item><importTaskId>t</importTaskId><snapshotTaskDetail><status>completed</status><snapshotId>snap-0a2</snapshotId></snapshotTaskDetail>` + ownTags +
		`</item></importSnapshotTaskSet></DescribeImportSnapshotTasksResponse>`,
	"GetConsoleOutput":   `<GetConsoleOutputResponse><output>aGVsbG8=</output></GetConsoleOutputResponse>`,
	"TerminateInstances": `<TerminateInstancesResponse><instancesSet/></TerminateInstancesResponse>`,
	"DescribeVolumes": `<DescribeVolumesResponse><volumeSet><item><volumeId>vol-a</volumeId>` + ownTags + `</item><item><volumeId>vol-b</volumeId>` + theirTags +
		`</item></volumeSet></DescribeVolumesResponse>`,
	"DescribeSnapshots": `<DescribeSnapshotsResponse><snapshotSet><item><snapshotId>snap-0a3</snapshotId><status>completed</status>` + ownTags + `</item><item><snapshotId>snap-0b1</snapshotId>` + theirTags +
		`</item><item><snapshotId>snap-0a2</snapshotId><status>completed</status>` + theirTags + `</item></snapshotSet></DescribeSnapshotsResponse>`,
	"DescribeHosts": `<DescribeHostsResponse><hostSet><item><hostId>h-a</hostId><state>available</state><allocationTime>2020-01-01T00:00:00Z</allocationTime>` + ownTags +
		`</item><item><hostId>h-b</hostId><state>available</state>` + theirTags + `</item></hostSet></DescribeHostsResponse>`,
	"ReleaseHosts": `<ReleaseHostsResponse><successful><item>h-a</item></successful><unsuccessful/></ReleaseHostsResponse>`,
	"DescribeLaunchTemplates": `<DescribeLaunchTemplatesResponse><launchTemplates><item><launchTemplateId>lt-a</launchTemplateId><launchTemplateName>poolkeeper-x</launchTemplateName>` + ownTags +
		`</item><item><launchTemplateId>lt-b</launchTemplateId><launchTemplateName>poolkeeper-y</launchTemplateName>` + theirTags + `</item></launchTemplates></DescribeLaunchTemplatesResponse>`,
	"ListObjectsV2":        `<ListBucketResult><Name>bucket</Name><Contents><Key>poolkeeper/o</Key></Contents></ListBucketResult>`,
	"GetObjectTagging":     `<Tagging><TagSet><Tag><Key>nodepool_provider_name</Key><Value>north</Value></Tag><Tag><Key>poolkeeper_site</Key><Value>a</Value></Tag></TagSet></Tagging>`,
	"ListMultipartUploads": `<ListMultipartUploadsResult><Bucket>bucket</Bucket><Upload><Key>poolkeeper/other/p</Key><UploadId>u</UploadId></Upload></ListMultipartUploadsResult>`,
}

// asked is a request to Amazon.
type asked struct {
	operation, id string // of what it is about
}

// amazon answers as usual, but for one operation.
type amazon struct {
	most    int               // requests, behind which it says that it is asked without end
	refuses map[string]string // operations that are refused, with the answers

	mu       sync.Mutex
	instead  string // the operation with another answer
	status   int
	body     []byte
	requests []asked
	enough   func() // ends what asks without end
}

// set has an operation be answered otherwise.
func (a *amazon) set(operation string, status int, body []byte, enough func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.instead, a.status, a.body, a.enough, a.requests = operation, status, body, enough, nil
}

// all are the requests since then.
func (a *amazon) all() []asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// served is how an operation is answered.
func (a *amazon) served(operation string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if operation == a.instead {
		return string(a.body)
	}
	return usual[operation]
}

// ServeHTTP implements http.Handler.
func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	one := asked{form.Get("Action"), ""}
	for _, key := range []string{"InstanceId.1", "ImageId", "SnapshotId", "VolumeId", "HostId.1", "LaunchTemplateId"} {
		one.id += form.Get(key)
	}
	if one.operation == "" {
		one = storage3(r)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests = append(a.requests, one); len(a.requests) == a.most {
		a.enough()
	}
	switch answer, known := usual[one.operation]; {
	case a.refuses[one.operation] != "":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, a.refuses[one.operation])
	case one.operation == a.instead:
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	case known:
		if slices.ContainsFunc(a.requests, func(one asked) bool { return one.operation == "TerminateInstances" }) {
			answer = strings.Replace(answer, "running", "terminated", 1)
		}
		_, _ = io.WriteString(w, answer)
	default: // the deletions
		_, _ = io.WriteString(w, "<Response><return>true</return></Response>")
	}
}

// storage3 tells what is asked of S3, or of the quotas.
func storage3(r *http.Request) asked {
	if _, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return asked{operation, ""}
	}
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	switch q := r.URL.Query(); {
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return asked{"AbortMultipartUpload", key}
	case r.Method == http.MethodDelete:
		return asked{"DeleteObject", key}
	case q.Has("uploads"):
		return asked{"ListMultipartUploads", ""}
	case q.Has("tagging"):
		return asked{"GetObjectTagging", key}
	}
	return asked{"ListObjectsV2", ""}
}

// fast is a clock by which an hour is 36 ms.
type fast struct {
	began time.Time
	ahead time.Duration
}

const timesFaster = 100_000

// Now implements clock.Source.
func (f *fast) Now() time.Time { return f.began.Add(f.ahead + time.Since(f.began)*timesFaster) }

// AfterFunc implements clock.Source.
func (f *fast) AfterFunc(d time.Duration, call func()) clock.Stopper {
	return time.AfterFunc(d/timesFaster, call)
}

// openOn opens a provider on a, as daemons do; also as what no secret is masked in.
func openOn(tb testing.TB, a *amazon) (providers.Provider, *Provider) {
	tb.Helper()
	server := httptest.NewServer(a)
	tb.Cleanup(server.Close)
	for key, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": password, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		tb.Setenv(key, value)
	}
	label := configs.PoolLabel{Name: "small", DiskImage: "tiny", Settings: &configs.AWSLabel{InstanceType: "t3.small"}}
	cfg := configs.Provider{
		Name: "north", Driver: configs.DriverAWS, Region: "eu-north-1", Settings: &configs.AWSDriver{Bucket: "bucket", MaxServers: -1, MaxCores: -1, MaxRAM: -1},
		DiskImages: []configs.ProviderImage{
			{Name: "tiny", Settings: &configs.AWSImage{ImportMethod: configs.AWSImportImage}}, {Name: "small", Settings: &configs.AWSImage{ImportMethod: configs.AWSImportSnapshot}},
		},
		Pools: []configs.Pool{{Name: "main", Settings: &configs.AWSPool{}, Labels: []configs.PoolLabel{label}}},
	}
	secrets := &redact.Secrets{}
	p, err := New(cfg, Options{Logger: hclog.NewNullLogger(), Secrets: secrets, RetryTime: time.Microsecond, CallTime: 10 * time.Second, Poll: 20 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	return providers.Redacted(p, secrets), p
}

// forgetAll has all that is kept of answers be forgotten.
func (p *Provider) forgetAll() {
	p.images.forget()
	p.sizes.forget()
	p.quotas.forget()
	p.leaks.only("", nil)
	p.fresh.ended = nil
	p.roster = &roster{list: p.listInstances}
}

// tree is an XML answer.
type tree struct {
	name, text string
	sub        []*tree
}

// treeOf reads an answer as far as it can be read.
func treeOf(body []byte) *tree {
	decoder, root := xml.NewDecoder(strings.NewReader(string(body))), &tree{}
	for open := []*tree{root}; ; {
		token, err := decoder.Token()
		if err != nil {
			return root
		}
		at := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			one := &tree{name: strings.ToLower(token.Name.Local)}
			at.sub = append(at.sub, one)
			open = append(open, one)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			at.text += string(token)
		}
	}
}

// each visits all below it.
func (n *tree) each(visit func(*tree)) {
	for _, one := range n.sub {
		visit(one)
		one.each(visit)
	}
}

// has reports whether something below it is called so, right below where deep is false.
func (n *tree) has(name string, deep bool) bool {
	return slices.ContainsFunc(n.sub, func(one *tree) bool { return one.name == name || deep && one.has(name, true) })
}

// ours reports whether an item has the marks of our installation.
func (n *tree) ours() bool {
	provider, others := false, false
	for _, set := range n.sub {
		set.each(func(tag *tree) {
			var key, value string
			for _, one := range tag.sub {
				switch one.name {
				case "key":
					key = one.text
				case "value":
					value = one.text
				}
			}
			provider = provider || key == providers.MetaProvider && value == "north"
			others = others || key == providers.MetaSite && value != "" && value != ourSite
		})
	}
	return provider && !others
}

// tell reports whether an answer tells that something called id is ours: an item with our marks names it.
func tell(body []byte, id string) (found bool) {
	treeOf(body).each(func(item *tree) {
		if item.name == "item" && item.ours() {
			item.each(func(one *tree) { found = found || one.text == id })
		}
	})
	return found
}

// madeOf reports whether an answer tells that our image is made of a snapshot.
func madeOf(answer, snapshot string) (found bool) {
	treeOf([]byte(answer)).each(func(item *tree) {
		if slices.ContainsFunc(item.sub, func(one *tree) bool { return one.name == "imageid" && one.text == ourImage }) {
			item.each(func(one *tree) { found = found || one.text == snapshot })
		}
	})
	return found
}

// isList reports whether an answer has a list of that name.
func isList(operation string, body []byte) bool {
	if operation == "ListServiceQuotas" {
		var answer struct{ Quotas []any }
		return json.NewDecoder(strings.NewReader(string(body))).Decode(&answer) == nil && answer.Quotas != nil
	}
	name := map[string]string{
		"DescribeInstances": "reservationset", "DescribeImages": "imagesset", "DescribeInstanceTypes": "instancetypeset", "DescribeImportImageTasks": "importimagetaskset",
	}[operation]
	root := treeOf(body)
	return len(root.sub) > 0 && root.sub[0].has(name, false)
}

// within is a context that goes by a fast clock, and ends in an hour of it where something is waited for.
func within(ctx context.Context, c *fast, waits bool) (context.Context, context.CancelFunc) {
	ctx = clock.With(ctx, clock.From(c))
	if waits {
		return clock.WithTimeout(ctx, time.Hour)
	}
	return context.WithTimeout(ctx, 20*time.Second)
}

// isDeletion tells what must be asked for of things that are ours only.
func isDeletion(operation string) bool {
	for _, pattern := range []string{"Delete*", "Terminate*", "Deregister*", "Release*", "Abort*"} {
		if ok, _ := path.Match(pattern, operation); ok {
			return true
		}
	}
	return false
}
