package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The answers of a Nodepool, byte for byte, are in testdata/nodepool. The tests
// here make records of its JSON, and compare what we say about them.

// row is an object of a listing whose keys are in order.
type row struct {
	keys   []string
	values map[string]any
}

// UnmarshalJSON remembers the order.
func (r *row) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &r.values); err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = dec.Token(); err == nil {
			r.keys = append(r.keys, key.(string))
			err = dec.Decode(&value)
		}
	}
	return err
}

func (r *row) str(key string) string {
	s, _ := r.values[key].(string)
	return s
}

func nodepool(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "nodepool", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parseRows(t *testing.T, text string) []*row {
	t.Helper()
	var rows []*row
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return rows
}

// nodepoolImages makes images of Nodepool's listings.
func nodepoolImages(t *testing.T) []*zkmodel.Image {
	t.Helper()
	images := map[string]*zkmodel.Image{}
	var list []*zkmodel.Image
	for _, r := range parseRows(t, nodepool(t, "image-status.json")) {
		images[r.str("image")] = &zkmodel.Image{Name: r.str("image")}
		list = append(list, images[r.str("image")])
	}
	builds := map[string]*zkmodel.BuildTree{}
	for _, r := range parseRows(t, nodepool(t, "dib-image-list.json")) {
		image, id, err := zkmodel.ParseBuildName(r.str("id"))
		if err != nil {
			t.Fatal(err)
		}
		data := fmt.Sprintf(`{"state": %q, "state_time": %v, "builder": %q, "formats": "qcow2"}`,
			r.str("state"), r.values["age"], r.str("builder"))
		builds[id] = &zkmodel.BuildTree{Build: zkmodel.DecodeBuild(image, id, []byte(data), recipe.Stat{})}
		images[image].Builds = append(images[image].Builds, builds[id])
	}
	for _, r := range parseRows(t, nodepool(t, "image-list.json")) {
		key := zkmodel.UploadKey{Image: r.str("image"), Build: r.str("id"), Provider: r.str("provider"), ID: r.str("upload_id")}
		data := fmt.Sprintf(`{"state": %q, "state_time": %v, "external_id": %q, "external_name": %q}`,
			r.str("state"), r.values["age"], r.str("external_id"), r.str("external_name"))
		builds[key.Build].Uploads = append(builds[key.Build].Uploads, zkmodel.DecodeUpload(key, []byte(data), recipe.Stat{}))
	}
	return list
}

// nodepoolPools are the pools whose labels Nodepool listed.
func nodepoolPools(t *testing.T) []*zkmodel.Component {
	t.Helper()
	var pools []*zkmodel.Component
	for i, r := range parseRows(t, nodepool(t, "label-list.json")) {
		pools = append(pools, &zkmodel.Component{
			Kind: zkmodel.KindPool, Hostname: "vm", ProviderName: fmt.Sprintf("fake-provider-%d", i), PoolName: "main",
			SupportedLabels: zkmodel.Strings{r.str("label")},
		})
	}
	return pools
}

// nodepoolNodes makes nodes of the listing of two.
func nodepoolNodes(t *testing.T) []*zkmodel.Node {
	t.Helper()
	renamed := map[string]string{"server_id": "external_id", "label": "type", "AZ": "az", "ipv6": "public_ipv6"}
	var nodes []*zkmodel.Node
	for _, r := range parseRows(t, nodepool(t, "node-list-two.json")) {
		record := map[string]any{}
		for key, value := range r.values {
			if as, ok := renamed[key]; ok {
				key = as
			}
			record[key] = value
		}
		var s int
		if _, err := fmt.Sscanf(r.str("age"), "00:00:00:%d", &s); err != nil {
			t.Fatal(err)
		}
		record["state_time"] = captured.Unix() - int64(s)
		delete(record, "age")
		data, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		n := zkmodel.DecodeNode(r.str("id"), data, recipe.Stat{})
		nodes = append(nodes, n)
	}
	return nodes
}

// nodepoolRequests makes the one request that Nodepool listed.
func nodepoolRequests(t *testing.T) []*zkmodel.Request {
	t.Helper()
	var requests []*zkmodel.Request
	for _, r := range parseRows(t, nodepool(t, "request-list-two.json")) {
		data, err := json.Marshal(r.values)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, zkmodel.DecodeRequest(r.str("id"), data, recipe.Stat{}))
	}
	return requests
}

func TestTablesAreThoseOfNodepool(t *testing.T) {
	o := Options{Tree: still(nodepoolImages(t), nil, nil, nodepoolPools(t)...), Now: clock(captured)}
	for file, target := range map[string]string{
		"image-list.txt":        "/image-list",
		"image-list-fields.txt": "/image-list?fields=id,image,state",
		"dib-image-list.txt":    "/dib-image-list",
		"image-status.txt":      "/image-status",
		"node-list.txt":         "/node-list",
		"request-list.txt":      "/request-list",
	} {
		response := get(t, o, target, "Accept", "text/plain")
		response.Expect(t, http.StatusOK)
		if diff := cmp.Diff(nodepool(t, file), response.Body); diff != "" {
			t.Errorf("%s (-nodepool +ours):\n%s", target, diff)
		}
		if got, want := response.Header.Get("Content-Type"), "text/plain; charset=UTF-8"; got != want {
			t.Errorf("%s: type %s, want %s", target, got, want)
		}
	}
	// Nodepool's labels have no order.
	lines := func(text string) []string { return slices.Sorted(strings.Lines(text)) }
	got := get(t, o, "/label-list", "Accept", "text/plain").Body
	if diff := cmp.Diff(lines(nodepool(t, "label-list.txt")), lines(got)); diff != "" {
		t.Errorf("/label-list (-nodepool +ours):\n%s", diff)
	}
}

func TestJSONHasTheKeysOfNodepool(t *testing.T) {
	o := Options{
		Tree: still(nodepoolImages(t), nodepoolNodes(t), nodepoolRequests(t), nodepoolPools(t)...),
		Now:  clock(captured),
	}
	for file, target := range map[string]string{
		"image-list.json":       "/image-list",
		"dib-image-list.json":   "/dib-image-list",
		"image-status.json":     "/image-status",
		"node-list-two.json":    "/node-list",
		"request-list-two.json": "/request-list",
		"label-list.json":       "/label-list",
	} {
		response := get(t, o, target, "Accept", "application/json")
		response.Expect(t, http.StatusOK)
		if got := response.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: type %s, want application/json", target, got)
		}
		want, got := parseRows(t, nodepool(t, file)), parseRows(t, response.Body)
		if target == "/label-list" { // they have no order there
			slices.SortFunc(want, func(a, b *row) int { return strings.Compare(a.str("label"), b.str("label")) })
		}
		if err := sameRows(want, got); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// Nodepool's page lists the builds of a paused image as ready.
func TestPausedImagesAreListedAsByNodepool(t *testing.T) {
	images := nodepoolImages(t)
	for _, image := range images {
		image.Paused = true
	}
	response := get(t, Options{Tree: still(images, nil, nil), Now: clock(captured)}, "/dib-image-list", "Accept", "application/json")
	response.Expect(t, http.StatusOK)
	if err := sameRows(parseRows(t, nodepool(t, "dib-image-list.json")), parseRows(t, response.Body)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(response.Body, `"paused": true`) {
		t.Errorf("the pause is not shown: %s", response.Body)
	}
}

// sameRows tells what Nodepool says and we do not; more keys may follow its own.
// An empty text is null for us: the records do not tell them apart.
func sameRows(want, got []*row) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	var all error
	for i := range want {
		if n := len(want[i].keys); len(got[i].keys) < n || !slices.Equal(got[i].keys[:n], want[i].keys) {
			all = errors.Join(all, fmt.Errorf("row %d: keys %v, want %v first", i, got[i].keys, want[i].keys))
		}
		for key, value := range want[i].values {
			if value == "" {
				value = nil
			}
			if diff := cmp.Diff(value, got[i].values[key]); diff != "" {
				all = errors.Join(all, fmt.Errorf("row %d: %s (-nodepool +ours):\n%s", i, key, diff))
			}
		}
	}
	return all
}

// Without nodes and requests Nodepool answers with an empty list.
func TestNothingIsAnEmptyList(t *testing.T) {
	o := Options{Tree: still(nil, nil, nil)}
	for _, path := range []string{"/image-list", "/dib-image-list", "/image-status", "/node-list", "/request-list", "/label-list"} {
		if got := strings.TrimSpace(get(t, o, path, "Accept", "application/json").Body); got != "[]" {
			t.Errorf("%s: %q, want []", path, got)
		}
	}
}

func TestHeadersAreThoseOfNodepool(t *testing.T) {
	response := get(t, Options{Tree: still(nil, nil, nil), Now: clock(captured)}, "/node-list")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*",
		"Cache-Control":               "max-age=1, public",
		"Last-Modified":               "Fri, 20 Nov 2026 07:26:56 GMT",
		"Expires":                     "Fri, 20 Nov 2026 07:26:57 GMT",
		"Vary":                        "Accept",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, want := response.Header.Get("Content-Length"), strconv.Itoa(len(response.Body)); got != want {
		t.Errorf("Content-Length: %s, want %s", got, want)
	}
}

func TestConditionalRequests(t *testing.T) {
	now := captured
	o := Options{Tree: still(nodepoolImages(t), nil, nil), Now: func() time.Time { return now }}
	first := get(t, o, "/image-list", "Accept", "application/json")
	same := []string{"Accept", "application/json", "If-None-Match", first.Header.Get("ETag")}
	get(t, o, "/image-list", "If-Modified-Since", first.Header.Get("Last-Modified")).Expect(t, http.StatusNotModified)
	now = now.Add(time.Minute)
	get(t, o, "/image-list", "If-Modified-Since", first.Header.Get("Last-Modified")).Expect(t, http.StatusOK)
	get(t, o, "/image-list", same...).Expect(t, http.StatusNotModified) // JSON holds times, not ages
	get(t, o, "/dib-image-list", same...).Expect(t, http.StatusOK)
}
