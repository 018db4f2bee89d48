package web

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// ago is the JSON of a state and of its time.
func ago(state string, d time.Duration) string {
	return fmt.Sprintf(`"state": %q, "state_time": %d`, state, captured.Add(-d).Unix())
}

func testBuild(id, record string, uploads ...*zkmodel.Upload) *zkmodel.BuildTree {
	return &zkmodel.BuildTree{
		Build: zkmodel.DecodeBuild("image", id, []byte("{"+record+"}"), recipe.Stat{}), Uploads: uploads,
	}
}

func testUpload(provider, id, record string) *zkmodel.Upload {
	key := zkmodel.UploadKey{Image: "image", Build: "0000000001", Provider: provider, ID: id}
	return zkmodel.DecodeUpload(key, []byte("{"+record+"}"), recipe.Stat{})
}

func testNode(id, record string) *zkmodel.Node {
	return zkmodel.DecodeNode(id, []byte("{"+record+"}"), recipe.Stat{})
}

func testRequest(id, record string) *zkmodel.Request {
	return zkmodel.DecodeRequest(id, []byte("{"+record+"}"), recipe.Stat{})
}

func component(kind, record string) *zkmodel.Component {
	c := zkmodel.DecodeComponent(kind+"0000000000", []byte("{"+record+"}"))
	c.Kind = kind
	return c
}

// everybody is there.
var everybody = []*zkmodel.Component{
	{Kind: zkmodel.KindBuilder, Hostname: "b1", State: "running"},
	{Kind: zkmodel.KindLauncher, Hostname: "l1", State: "running"},
}

// troublesOf tells of what needs attention, without the time.
func troublesOf(images []*zkmodel.Image, nodes []*zkmodel.Node, requests []*zkmodel.Request, components []*zkmodel.Component) []string {
	h := newHandler(Options{Tree: still(images, nodes, requests, components...), Now: clock(captured)})
	list := []string{}
	for _, t := range h.site.Items() {
		list = append(list, listing.Words(": ", t.What, t.Why))
	}
	return list
}

func TestImageTroubles(t *testing.T) {
	const minute = time.Minute
	ready, failed := testBuild("0000000001", ago("ready", time.Hour)), testBuild("0000000002", ago("failed", minute)+`, "reason": "exit code 1", "failures": 3`)
	left := testBuild("0000000003", ago("building", 2*minute))
	for name, test := range map[string]struct {
		image zkmodel.Image
		want  []string
	}{
		"ready":         {zkmodel.Image{Builds: []*zkmodel.BuildTree{ready}}, nil},
		"failed":        {zkmodel.Image{Builds: []*zkmodel.BuildTree{ready, failed}}, []string{"Build image-0000000002 failed, 3 in a row: exit code 1"}},
		"failed before": {zkmodel.Image{Builds: []*zkmodel.BuildTree{failed, ready}}, nil},
		"none":          {zkmodel.Image{}, []string{"Image image has no ready build: and none is under way"}},
		"none, paused":  {zkmodel.Image{Paused: true}, nil},
		"only deleted": {
			zkmodel.Image{Builds: []*zkmodel.BuildTree{testBuild("0000000001", ago("deleting", minute))}},
			[]string{"Image image has no ready build: and none is under way"},
		},
		"under way":            {zkmodel.Image{BuildsLocked: true, Builds: []*zkmodel.BuildTree{left}}, nil},
		"failed and under way": {zkmodel.Image{BuildsLocked: true, Builds: []*zkmodel.BuildTree{failed, left}}, []string{"Build image-0000000002 failed, 3 in a row: exit code 1"}},
		"left behind": {
			zkmodel.Image{Builds: []*zkmodel.BuildTree{ready, left}},
			[]string{"Build image-0000000003 was left behind: nobody holds its lock, and nobody has cleaned it"},
		},
		"ended just now": {zkmodel.Image{Builds: []*zkmodel.BuildTree{ready, testBuild("0000000003", ago("building", time.Second))}}, nil},
		"broken": {
			zkmodel.Image{Builds: []*zkmodel.BuildTree{ready, testBuild("0000000003", `"state"`)}},
			[]string{"Build image-0000000003 cannot be read: decode record: invalid character '}' after object key; to remove the record: poolkeeper dib-image-delete --broken image-0000000003"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.image.Name = "image"
			got := troublesOf([]*zkmodel.Image{&test.image}, nil, nil, everybody)
			if diff := cmp.Diff(append([]string{}, test.want...), got); diff != "" {
				t.Errorf("troubles (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuilderThatHasWithdrawn(t *testing.T) {
	b := component(zkmodel.KindBuilder, `"hostname": "b2", "state": "paused", "reason": "make build-log-dir: no room"`)
	want := []string{"The builder on b2 builds nothing: make build-log-dir: no room"}
	if diff := cmp.Diff(want, troublesOf(nil, nil, nil, append([]*zkmodel.Component{b}, everybody...))); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
}

func TestUploadTroubles(t *testing.T) {
	image := &zkmodel.Image{Name: "image", Builds: []*zkmodel.BuildTree{
		testBuild("0000000001", ago("ready", time.Hour),
			testUpload("cloud-a", "0000000001", ago("failed", time.Minute)+`, "reason": "quota exceeded", "failures": 2`),
			testUpload("cloud-b", "0000000001", ago("failed", time.Minute)),
			testUpload("cloud-b", "0000000002", ago("ready", time.Second)),
			testUpload("cloud-c", "0000000001", ago("failed", time.Minute)+`, "reason": "503"`),
			testUpload("cloud-c", "0000000002", ago("deleting", time.Second)),
			testUpload("cloud-d", "0000000001", ago("failed", time.Minute)),
			testUpload("cloud-e", "0000000001", ago("ready", time.Minute)+`, "suspect": "3 boots failed"`)),
		testBuild("0000000002", ago("ready", time.Minute), testUpload("cloud-d", "0000000001", ago("uploading", time.Second))),
	}}
	want := []string{
		"Upload of image-0000000001 to cloud-a failed, 2 in a row: quota exceeded",
		"Upload of image-0000000001 to cloud-c failed: 503",
		"Image image-0000000001 in cloud-e does not boot, an older one is used: 3 boots failed",
	}
	if diff := cmp.Diff(want, troublesOf([]*zkmodel.Image{image}, nil, nil, everybody)); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
}

func TestNodeAndRequestTroubles(t *testing.T) {
	nodes := []*zkmodel.Node{
		testNode("0000000001", ago("ready", 24*time.Hour)),
		testNode("0000000002", ago("failed", time.Second)+`, "provider": "cloud-a", "reason": "no host key"`),
		testNode("0000000003", ago("deleting", time.Minute)),
		testNode("0000000004", ago("deleting", 11*time.Minute)+`, "reason": "503"`),
		testNode("0000000005", ago("used", 11*time.Minute)),
		testNode("0000000006", ago("in-use", 11*time.Minute)),
		testNode("0000000007", `"state"`),
	}
	requests := []*zkmodel.Request{
		testRequest("100-0000000001", ago("fulfilled", time.Hour)),
		testRequest("100-0000000002", ago("failed", time.Second)+`, "requestor": "zuul-1", "reason": "no image is ready"`),
		testRequest("100-0000000003", ago("requested", time.Minute)),
		testRequest("100-0000000004", ago("pending", time.Hour)),
		testRequest("100-0000000005", `"state"`),
	}
	want := []string{
		"Node 0000000002 in cloud-a failed: no host key",
		"Node 0000000003 is not deleted",
		"Node 0000000004 is not deleted: 503",
		"Node 0000000005 is not deleted",
		"Node 0000000007 cannot be read, and counts in every pool: decode record: invalid character '}' after object key; to remove the record: poolkeeper node-delete --broken 0000000007",
		"Request 100-0000000002 of zuul-1 failed: no image is ready",
		"Request 100-0000000004 waits: nodes are being launched",
		"Request 100-0000000005 cannot be read: decode record: invalid character '}' after object key",
	}
	if diff := cmp.Diff(want, troublesOf(nil, nodes, requests, everybody)); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	nodes[4].Locked = true // Zuul holds it still
	if got := troublesOf(nil, nodes[4:5], nil, everybody); len(got) > 0 {
		t.Errorf("a used node that is held: %v, want none", got)
	}
}

func TestDaemonTroubles(t *testing.T) {
	image := &zkmodel.Image{Name: "image", Paused: true}
	request := testRequest("100-0000000001", ago("fulfilled", time.Second))
	want := []string{
		"No builder is running: images are neither built nor uploaded",
		"No launcher is running: nodes are neither launched nor deleted",
	}
	if diff := cmp.Diff(want, troublesOf([]*zkmodel.Image{image}, nil, []*zkmodel.Request{request}, nil)); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	if got := troublesOf(nil, nil, nil, nil); len(got) > 0 {
		t.Errorf("an empty tree: %v, want none", got)
	}
}

// aSite is a page with something of everything.
func aSite() Options {
	uploading := testUpload("cloud-b", "0000000001", ago("uploading", time.Minute)+
		`, "external_name": "image-1", "progress": {"sent": 1073741824, "total": 4294967296, "rate": 10485760.5, "eta": 300}`)
	image := &zkmodel.Image{Name: "image", Builds: []*zkmodel.BuildTree{
		testBuild("0000000001", ago("ready", 26*time.Hour)+`, "builder": "b1", "formats": "qcow2,raw", "phases": {"dib": 600, "sum": 15},
			"files": {"qcow2": {"size": 1073741824}, "raw": {"size": 2147483648}}, "log": "http://b1:8005/log/image-0000000001"`,
			testUpload("cloud-a", "0000000001", ago("ready", 25*time.Hour)+`, "external_id": {"id": 7}`), uploading),
		testBuild("0000000002", ago("failed", 5*time.Minute)+
			`, "reason": "disk-image-create: exit code 1", "tail": "E: <b>no</b> space", "failures": 2, "log": "javascript:alert(1)"`),
	}, BuildRequested: &recipe.Stat{Ctime: captured.Add(-4 * time.Second)}}
	nodes := []*zkmodel.Node{
		testNode("0000000001", ago("ready", 3*time.Second)+`, "provider": "cloud-a", "pool": "main", "type": ["small"], "hostname": "<script>x</script>",
			"interface_ip": "127.0.0.1", "connection_port": 2222, "image_id": "/nodepool/images/image/builds/0000000001/providers/cloud-a/images/0000000001"`),
		testNode("0000000002", ago("hold", time.Hour)+`, "provider": "cloud-a", "type": "small", "allocated_to": "100-0000000001", "comment": "for Ann", "connection_port": {"token": "secret"}`),
		testNode("0000000003", ago("ready", time.Hour)+`, "provider": "cloud-a", "type": "small"`),
	}
	requests := []*zkmodel.Request{testRequest("100-0000000001", ago("pending", time.Second)+`, "node_types": ["small", "big"], "requestor": "zuul", "event_id": "event-7", "declined_by": ["pool-b"]`)}
	components := append(append([]*zkmodel.Component{}, everybody...),
		component(zkmodel.KindPool, `"hostname": "l1", "provider_name": "cloud-a", "name": "main", "supported_labels": ["small"], "paused": true, "state": "running"`))
	return Options{
		Daemon: "launcher", Host: "l1", Version: "1.2", Now: clock(captured), Logs: buildlog.NewDir(nil),
		Tree: still([]*zkmodel.Image{image, {Name: "other", Paused: true}}, nodes, requests, components...),
	}
}

// What each page says of a site with something of everything.
func TestPagesShow(t *testing.T) {
	o := aSite()
	o.Ready = func() error { return errors.New("cloud-b is not started") }
	o.Explain = func(_ context.Context, image string) ([]Reason, error) {
		if image == "other" {
			return nil, errors.New("the folder is gone")
		}
		return []Reason{{Subject: "build", Rule: "rebuild-age", Speaks: "no", Detail: image + " is young"}}, nil
	}
	o.Config = func() *configs.Config {
		return &configs.Config{DiskImages: []configs.DiskImage{{Name: "image", RebuildAge: 48 * time.Hour, KeepBuilds: 2}, {Name: "other"}}}
	}
	for path, wants := range map[string][]string{
		"/images/image/explain": {"rebuild-age", "image is young"},
		"/images/other/explain": {"cannot be told: the folder is gone"},
		"/": {
			"<title>Not ready: Poolkeeper launcher on l1</title>", "Not ready: cloud-b is not started",
			"Build image-0000000002 failed, 2 in a row", "disk-image-create: exit code 1", "1 request waiting", "3 nodes",
		},
		"/attention": {"Build image-0000000002 failed, 2 in a row", "E: &lt;b&gt;no&lt;/b&gt; space", "poolkeeper build-log image-0000000002"},
		"/images": {
			`build requested 4s ago`, `<small>3.0 GiB</small>`, `<small>in 10m</small>`, `>1d 2h</time>`,
			`25% of 4.0 GiB, 10 MiB/s, 5m 0s left`, `<progress max="100" value="25"`, `2 in a row`, `disk-image-create: exit code 1`,
		},
		"/images/image":             {"when 2d 0h old", "in 22h", "what the builder has to do", "data-part>image <span", "build requested", "0000000001", "disk-image-create: exit code 1"},
		"/builds/image-0000000001":  {"<b>dib</b> 10m", "raw", "2.0 GiB", "the whole log", "25% of 4.0 GiB"},
		"/builds/image-0000000002":  {`<pre>E: &lt;b&gt;no&lt;/b&gt; space</pre>`},
		"/nodes":                    {`<span class="st good">2 ready</span>`, `<span class="st off">1 hold</span>`, `127.0.0.1 port 2222`, `image-0000000001`, `for Ann`},
		"/nodes?state=hold":         {"0000000002"},
		"/nodes/0000000002":         {"for Ann", "cloud-a", "event-7"},
		"/requests":                 {"small, big", "pool-b", "event-7"},
		"/requests/100-0000000001":  {"declined by pool-b", "asked for by zuul"},
		"/providers":                {"cloud-a", "cloud-b"},
		"/providers/cloud-a":        {"main"},
		"/daemons":                  {"b1", "l1", `<span class="st off">paused</span>`},
		"/daemons/builder/b1":       {"Builder on b1"},
		"/search?q=image-000000000": {"image-0000000001", "image-0000000002"},
	} {
		response := get(t, o, path)
		response.Expect(t, http.StatusOK)
		page := shown(response)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, page[strings.Index(page, "<main"):])
			}
		}
		for _, not := range []string{"<script>x", "javascript:", "secret", "ZgotmplZ"} {
			if strings.Contains(page, not) {
				t.Errorf("%s has %q", path, not)
			}
		}
	}
	for _, path := range []string{"/", "/images/image"} { // names and reasons are never markup
		hostile := aSite()
		key := zkmodel.UploadKey{Image: `<b>"x`, Build: "0000000001", Provider: `<i>'y`, ID: "0000000001"}
		hostile.Tree.Images = func() []*zkmodel.Image {
			return []*zkmodel.Image{{Name: key.Image, Builds: []*zkmodel.BuildTree{{
				Build:   zkmodel.DecodeBuild(key.Image, key.Build, []byte("{"+ago("ready", time.Hour)+"}"), recipe.Stat{}),
				Uploads: []*zkmodel.Upload{zkmodel.DecodeUpload(key, []byte("{"+ago("failed", time.Minute)+`, "reason": "\"><script>x</script>\u202e"}`), recipe.Stat{})},
			}}}, {Name: "image"}}
		}
		if page := get(t, hostile, path).Body; strings.Contains(page, "<script>x") || strings.Contains(page, `<b>"x`) || strings.Contains(page, "<i>'y") || strings.Contains(page, "\u202e") {
			t.Errorf("%s takes a name for markup:\n%s", path, page)
		}
	}
	if page := get(t, o, "/nodes?state=hold").Body; strings.Contains(page, "/nodes/0000000001") {
		t.Error("a filter lets everything pass")
	}
	for _, path := range []string{"/images/nope", "/builds/image-0000000009", "/nodes/nope", "/requests/nope", "/providers/nope", "/daemons/builder/nope"} {
		if response := get(t, o, path); response.Status != http.StatusNotFound || !strings.Contains(response.Body, "<nav") {
			t.Errorf("%s: status %d, want a page that says that it is not there", path, response.Status)
		}
	}
	for path, want := range map[string]string{
		"/images/imag": `did you mean &#34;image&#34;`, "/builds/image-0000000009": "image-0000000001", "/nodes/0000000009": "0000000001", "/requests/100-0000000002": "100-0000000001",
		"/providers/cloud-c": "cloud-a", "/daemons/builder/b2": "b1",
	} {
		if page := get(t, o, path).Body; !strings.Contains(page, "; these are: ") || !strings.Contains(page, want) {
			t.Errorf("%s does not say what was meant: %s", path, page[strings.Index(page, "<main"):])
		}
	}
	if response := get(t, o, "/search?q=0000000002"); response.Header.Get("Location") != "/nodes/0000000002" {
		t.Errorf("a search for a node's id: %d %s", response.Status, response.Header.Get("Location"))
	}
	images := get(t, o, "/images").Body
	for _, want := range []string{`<a href="/build-log/image-0000000001">log</a>`, `<a href="/build-log/image-0000000002">log</a>`} {
		if !strings.Contains(images, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// scriptless is a page without its script, which is no markup.
func scriptless(page string) string {
	before, rest, _ := strings.Cut(page, "<script>")
	_, after, _ := strings.Cut(rest, "</script>")
	return before + after
}

// Every element that is opened is closed, in order.
func TestPageIsWellFormed(t *testing.T) {
	paths := []string{
		"/", "/attention", "/images", "/images/image", "/builds/image-0000000001", "/nodes", "/nodes/0000000001", "/requests", "/requests/100-0000000001",
		"/providers", "/providers/cloud-a", "/daemons", "/daemons/launcher/l1", "/search?q=a", "/search",
	}
	pages := map[string]Options{"/ ": {Tree: still(nil, nil, nil)}, "/  ": {}}
	for _, path := range paths {
		pages[path] = aSite()
	}
	for name, o := range pages {
		dec := xml.NewDecoder(strings.NewReader(scriptless(get(t, o, strings.TrimSpace(name)).Body)))
		dec.Strict, dec.AutoClose, dec.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
		elements := 0
		for {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if elements < 20 {
			t.Errorf("%s: %d elements are no page", name, elements)
		}
	}
}

func TestPageHasAnEnd(t *testing.T) {
	page := get(t, Options{Tree: still(nil, manyNodes(507), nil), Now: clock(captured)}, "/nodes").Body
	if got := strings.Count(page, `<a href="/nodes/00`); got != 500 {
		t.Errorf("%d nodes are shown, want 500", got)
	}
	if !strings.Contains(page, "… and 7 more; all are in <a href=\"/node-list\">") {
		t.Error("the page does not say that there are more")
	}
}

// Providers that cannot be used need attention: one line for each that says the same of
// it, whatever the number of pools and hosts.
func TestProviderTroubles(t *testing.T) {
	pool := func(host, provider, name, more string) *zkmodel.Component {
		return component(zkmodel.KindPool, fmt.Sprintf(`"hostname": %q, "provider_name": %q, "name": %q, "state": "running"%s`, host, provider, name, more))
	}
	const refused = `, "trouble": "connection refused", "troubled_labels": ["small"], "supported_labels": [], "paused": true`
	got := troublesOf(nil, nil, nil, append(everybody,
		pool("l2", "north", "main", refused), pool("l1", "north", "main", refused), pool("l1", "north", "other", refused),
		pool("l1", "south", "main", `, "trouble": "no such cloud"`), pool("l1", "east", "main", ""),
		component(zkmodel.KindBuilder, `"hostname": "b1", "state": "running", "troubles": {"north": "connection refused"}`),
	))
	want := []string{
		"Provider north cannot be used by the builder on b1 and the launcher on l1, l2: connection refused",
		"Provider south cannot be used by the launcher on l1: no such cloud",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	page := shown(get(t, Options{Tree: still(nil, nil, nil, pool("l1", "north", "main", refused)), Now: clock(captured)}, "/daemons"))
	if want := `<span class="st bad">cannot be used</span><div class="why">connection refused</div></td><td data-head="Labels">small</td>`; !strings.Contains(page, want) {
		t.Errorf("the pool is not shown as %s:\n%s", want, page)
	}
}
