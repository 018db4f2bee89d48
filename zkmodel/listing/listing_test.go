package listing

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs/effective"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

var now = time.Unix(1795161300, 0)

// images is a small tree: what Nodepool wrote, what we wrote, and what neither
// should have written.
func images() []*zkmodel.Image {
	const (
		build    = `{"state": "ready", "state_time": 1795161248.97, "builder": "localhost", "builder_id": "47d8", "formats": "qcow2,raw", "username": "zuul", "python_path": "auto", "shell_type": null}`
		upload   = `{"state": "ready", "state_time": 1795161252.52, "external_id": "39fd43df", "external_name": "image-000-1795161252", "format": "qcow2", "username": "zuul", "python_path": "auto", "shell_type": null}`
		failed   = `{"state": "failed", "state_time": 1795061252.0, "builder": "b2", "reason": "disk-image-create: exit code 1", "exit_code": 1, "failures": 3, "retry_at": 1795161540.25, "tail": "E: no such package", "phases": {"command": 12.5}, "log": "http://b2:8006/log/image-000-0000000002"}`
		running  = `{"state": "building", "state_time": 1795161290.0, "builder": "b2", "formats": "qcow2"}`
		uploaded = `{"state": "uploading", "state_time": 1795161299.0, "external_id": null, "external_name": "image-001-1", "format": "raw", "progress": {"sent": 512, "total": 2048, "rate": 1, "eta": 2}}`
	)
	written := recipe.Stat{Mtime: now.Add(-time.Hour), Ctime: now.Add(-4 * time.Second)}
	tree := func(image, id, data string, uploads ...*zkmodel.Upload) *zkmodel.BuildTree {
		return &zkmodel.BuildTree{Build: zkmodel.DecodeBuild(image, id, []byte(data), written), Uploads: uploads}
	}
	up := func(image, build, provider, id, data string) *zkmodel.Upload {
		key := zkmodel.UploadKey{Image: image, Build: build, Provider: provider, ID: id}
		return zkmodel.DecodeUpload(key, []byte(data), written)
	}
	return []*zkmodel.Image{
		{Name: "image-000", Builds: []*zkmodel.BuildTree{
			tree("image-000", "c0ffd6e2dfb84895ab3732ce08473f97", build,
				up("image-000", "c0ffd6e2dfb84895ab3732ce08473f97", "fake-provider-0", "0000000001", upload)),
			tree("image-000", "0000000002", failed),
			tree("image-000", "0000000003", running),
		}, BuildsLocked: true, BuildRequested: &written},
		{Name: "image-001", Paused: true, Builds: []*zkmodel.BuildTree{
			tree("image-001", "0000000001", build, up("image-001", "0000000001", "local", "0000000001", uploaded)),
			tree("image-001", "0000000002", ""),
		}},
		{Name: "image-002", BuildRequested: &written},
	}
}

func nodes() []*zkmodel.Node {
	const (
		ready = `{"state": "ready", "state_time": 1795161298.0, "provider": "fake-provider-1", "pool": "main", "type": ["label-0"], "allocated_to": "100-0000000000", "az": "az1", "public_ipv4": "fake", "private_ipv4": "fake", "connection_port": 22, "external_id": "6d4e50ef", "username": "zuul", "launcher": "localhost-PoolWorker"}`
		pod   = `{"state": "in-use", "state_time": 1795161200.0, "provider": "k8s", "type": "pod", "connection_port": {"token": "secret"}, "external_id": {"instance": "i-1", "host": null}, "comment": "it's\u001b[31m\nred", "user_data": {"zuul_system": "a", "n": [1, 2.50, true, {}]}, "driver_data": "text"}`
	)
	list := []*zkmodel.Node{
		zkmodel.DecodeNode("0000000000", []byte(ready), recipe.Stat{}),
		zkmodel.DecodeNode("0000000001", []byte(pod), recipe.Stat{}),
	}
	list[1].Locked = true
	return list
}

func requests() []*zkmodel.Request {
	const fulfilled = `{"state": "fulfilled", "state_time": 1795161298.0, "declined_by": [], "node_types": ["label-0", "label-1"], "nodes": ["0000000000", "0000000001"], "requestor": "snap", "relative_priority": 0, "event_id": "be789a95"}`
	return []*zkmodel.Request{
		zkmodel.DecodeRequest("100-0000000000", []byte(fulfilled), recipe.Stat{}),
		zkmodel.DecodeRequest("200-0000000001", []byte(`{"state": "failed", "declined_by": ["a", "b"], "node_types": ["x"], "reason": "no image is ready"}`), recipe.Stat{}),
	}
}

// settings are values of a configuration, one from each kind of place.
func settings() []effective.Row {
	file := effective.Origin{Source: effective.File, File: "nodepool.yaml", Line: 12}
	inherited := effective.Origin{Source: effective.Fleet, File: "zk:version-3", Line: 7, Version: 3, Inherited: "diskimages[base]", Variables: []string{"NODEPOOL_X"}}
	return []effective.Row{
		{Path: "diskimages[debian].release", Value: "22.04", Origin: file},
		{Path: "diskimages[debian].pause", Value: true, Origin: inherited},
		{Path: "diskimages[debian].env-vars.TOKEN", Value: "********", Secret: true, Origin: effective.Origin{Source: effective.Secure, File: "secure.conf", Line: 3, Over: "nodepool.yaml:14"}},
		{Path: "diskimages[debian].formats[0]", Value: "raw", Origin: effective.Origin{Source: effective.Derived, Because: "providers[one] takes it"}},
		{Path: "images-dir", Value: "a\nb\x1b[31m", Origin: effective.Origin{Source: effective.Host, File: "host.yaml", Line: 1}},
		{Path: "providers[one].rate", Value: 0.5, Default: true, Origin: effective.Origin{Source: effective.Default}},
		{Path: "diskimages[debian].rebuild-age", Value: int64(86400), Origin: file},
		{Path: "diskimages[debian].metadata", Value: map[string]any{}, Origin: file},
		{Path: "diskimages[debian].metadata.a\nb", Value: "one\ntwo", Origin: file},
	}
}

// The golden files hold the table, the table with details, and the JSON. To
// write them anew: UPDATE_GOLDEN=1 go test ./zkmodel/listing.
func TestGolden(t *testing.T) {
	for name, table := range map[string]*Table{
		"builds":   Builds(images(), now),
		"uploads":  Uploads(images(), now),
		"images":   Images(images(), now, nil),
		"nodes":    Nodes(nodes(), now),
		"requests": Requests(requests()),
		"empty":    Requests(nil),

		"configuration": Configuration(settings()),
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := errors.Join(table.WriteText(&got, false), table.WriteText(&got, true), table.WriteJSON(&got)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".golden")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJSONIsOneObjectARow(t *testing.T) {
	for name, table := range map[string]*Table{
		"nodes": Nodes(nodes(), now), "builds": Builds(images(), now), "none": Nodes(nil, now),
	} {
		var out strings.Builder
		if err := table.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		var rows []map[string]any
		if err := json.Unmarshal([]byte(out.String()), &rows); err != nil {
			t.Fatalf("%s: %v in %s", name, err, out.String())
		}
		if len(rows) != table.Len() {
			t.Errorf("%s: %d objects, want %d", name, len(rows), table.Len())
		}
		for _, row := range rows {
			if len(row) != len(table.columns) {
				t.Errorf("%s: %d keys, want %d", name, len(row), len(table.columns))
			}
		}
	}
}

// What trials add is one column; all else is as without. Mistakes: a column in Nodepool's
// listings; a trial of another upload; text of a record that breaks the table.
func TestTrials(t *testing.T) {
	tree := images()
	tried := func(build, record string) {
		key := zkmodel.UploadKey{Image: "image-001", Build: build, Provider: "north", ID: "0000000001"}
		b := tree[1].Build(build)
		b.Uploads = append(b.Uploads, zkmodel.DecodeUpload(key, []byte(record), recipe.Stat{Czxid: 7, Mtime: now}))
	}
	const record = `{"state": "uploading", "state_time": 1795161299.0, "external_id": "x"}`
	tried("0000000001", record)
	tried("0000000002", record)
	trials := []*zkmodel.Validation{{
		Image: "image-001", Build: "0000000001", Provider: "north", Upload: "0000000001", UploadCzxid: 7, Since: zkmodel.EpochOf(now.Add(-2 * time.Hour)),
		Result: &zkmodel.ValidationResult{
			State: zkmodel.ValidationUntried, Why: "no\nroom", Tries: 2, Faults: 3, Since: zkmodel.EpochOf(now.Add(-time.Minute)), Pool: "main",
			FirstUntried: zkmodel.EpochOf(now.Add(-time.Hour)),
		},
	}, {Image: "image-001", Build: "0000000002", Provider: "north", Upload: "0000000001", UploadCzxid: 6}} // of an earlier one
	const text = "untried for 00:00:01:00, nodes failed: 2, tries that told nothing: 3: no room"
	const one = `"state":"untried","why":"no\nroom","since":1795161240,"untried_since":1795157700,"tries":2,"faults":3,"pool":"main"}`
	const lost = `"state":"on trial","why":"its record is not there, or cannot be read","tries":0,"faults":0}`
	for name, test := range map[string]struct {
		with, without *Table
		text, json    []string
	}{
		"uploads": {
			UploadsOnTrial(tree, trials, now), Uploads(tree, now),
			[]string{"| Trial ", "| " + text + " |", "| on trial: its record is not there, or cannot be read"},
			[]string{`"trial": {` + one, `"trial": {` + lost, `"trial": null`},
		},
		"images": {
			ImagesOnTrial(tree, trials, now, nil), Images(tree, now, nil),
			[]string{"| Trials ", "| build 0000000001 at north is " + text + "; build 0000000002 at north is on trial"},
			[]string{`"trials": []`, `"trials": [{"build":"0000000001","provider":"north","upload":"0000000001",` + one + `,{"build":"0000000002","provider":"north","upload":"0000000001",` + lost + "]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var plain, bare, detailed, json strings.Builder
			if err := errors.Join(test.with.WriteText(&plain, false), test.without.WriteText(&bare, false), test.with.WriteText(&detailed, true), test.with.WriteJSON(&json)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(bare.String(), plain.String()); diff != "" {
				t.Errorf("without details (-want +got):\n%s", diff)
			}
			for _, want := range test.text {
				if !strings.Contains(detailed.String(), want) {
					t.Errorf("%q is not in\n%s", want, &detailed)
				}
			}
			for _, want := range test.json {
				if !strings.Contains(json.String(), want) {
					t.Errorf("%s is not in\n%s", want, &json)
				}
			}
		})
	}
}

// What comes of a canary stands beside its upload, and beside what waits for it, and the images say
// of the latter what it waits for. Mistakes: figures of another provider; a build that waits
// and tells nobody what for.
func TestCanaries(t *testing.T) {
	i := &zkmodel.Image{Name: "image"}
	for n, id := range []string{"0000000001", "0000000002", "0000000003"} {
		b := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "image", ID: id, State: zkmodel.BuildReady, Stat: recipe.Stat{Czxid: int64(n + 1)}}}
		for _, p := range []string{"north", "south"} {
			record := `{"state": "ready", "external_id": "x"}`
			if n == 2 && p == "north" {
				record = `{"state": "uploading", "external_id": "x"}`
			}
			key := zkmodel.UploadKey{Image: "image", Build: id, Provider: p, ID: "0000000001"}
			b.Uploads = append(b.Uploads, zkmodel.DecodeUpload(key, []byte(record), recipe.Stat{Czxid: int64(10 * (n + 1)), Mtime: now}))
		}
		i.Builds = append(i.Builds, b)
	}
	c := zkmodel.NewCanary("north", "image", i.Builds[0].Build).Begin(i.Builds[1].Uploads[0], i.Builds[1].Build, 1)
	c.Trial.Nodes = 7
	i.Canaries = []*zkmodel.Canary{c}
	waits := zkmodel.WaitingValidation("it waits until build 0000000002, the canary, is decided")
	waits.Image, waits.Build, waits.Provider, waits.Upload, waits.UploadCzxid = "image", "0000000003", "north", "0000000001", 30
	trials := []*zkmodel.Validation{waits}
	for name, c := range map[string]struct {
		table *Table
		want  map[string]int
	}{
		"uploads": {UploadsOnTrial([]*zkmodel.Image{i}, trials, now), map[string]int{
			"canary: of 7 nodes 0 did not boot": 1, "it waits to be the canary": 1, ": it waits until build 0000000002, the canary, is decided": 1,
		}},
		"images": {ImagesOnTrial([]*zkmodel.Image{i}, trials, now, nil), map[string]int{
			"build 0000000003 at north is waiting": 1, ": it waits until build 0000000002, the canary, is decided": 1,
		}},
	} {
		var text strings.Builder
		if err := c.table.WriteText(&text, true); err != nil {
			t.Fatal(err)
		}
		for want, times := range c.want {
			if n := strings.Count(text.String(), want); n != times {
				t.Errorf("%s: %q stands %d times in\n%s", name, want, n, &text)
			}
		}
	}
}

// Credentials of pods stand where other nodes have a port.
func TestCredentialsAreNotShown(t *testing.T) {
	var out strings.Builder
	table := Nodes(nodes(), now)
	if err := errors.Join(table.WriteText(&out, true), table.WriteJSON(&out)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "secret") || strings.ContainsRune(out.String(), '\x1b') {
		t.Errorf("a secret or an escape sequence is shown:\n%s", out.String())
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "00:00:00:00",
		-time.Minute:                          "00:00:00:00",
		59*time.Second + 999*time.Millisecond: "00:00:00:59",
		25*time.Hour + 61*time.Second:         "01:01:01:01",
		120*24*time.Hour + 23*time.Hour + 59*60e9: "120:23:59:00",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestPython(t *testing.T) {
	for in, want := range map[string]string{
		`"text as it is"`:                        "text as it is",
		`{"b": 1, "a": [true, null, 2.50, "x"]}`: "{'b': 1, 'a': [True, None, 2.50, 'x']}",
		`["it's", "\"'", "a\\b\n"]`:              `["it's", '"\'', 'a\\b\n']`,
		`{}`:                                     "{}",
		`7`:                                      "7",
	} {
		if got := python(zkmodel.JSONValue([]byte(in))); got != want {
			t.Errorf("python(%s) = %s, want %s", in, got, want)
		}
	}
}
