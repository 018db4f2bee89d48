package overview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// ask puts a request into a tree.
func ask(tree *Tree, id, state string, ago time.Duration, more string) *zkmodel.Request {
	r := zkmodel.DecodeRequest(id, record(state, ago, `, "event_id": "ev-`+id+`", "requestor": "zuul"`+more), recipe.Stat{Ctime: night.Add(-ago)})
	tree.Requests = append(tree.Requests, r)
	return r
}

// launched puts a node into a tree.
func launched(tree *Tree, id, state string, ago time.Duration, more string) *zkmodel.Node {
	n := zkmodel.DecodeNode(id, record(state, ago, more), recipe.Stat{Ctime: night.Add(-ago)})
	tree.Nodes = append(tree.Nodes, n)
	return n
}

const waits = `, "node_types": ["small"]`

// Why a request waits is told pool by pool. Mistakes: a pool that is left out, or told to be able
// to serve; one request's reason told of another; a next step that never comes.
func TestExplainRequest(t *testing.T) {
	tree, cfg := site(t, 1, 8)
	r := ask(tree, "200-0000000005", "requested", time.Hour, waits+`, "declined_by": ["cloud-00main"], "reason": "pool main: no flavor"`)
	ask(tree, "100-0000000006", "requested", time.Minute, waits)
	ask(tree, "200-0000000007", "requested", time.Minute, waits)
	ask(tree, "100-0000000008", "requested", time.Minute, `, "node_types": ["large"]`)
	pool := func(n int) *zkmodel.Component { return tree.Pools[2*n] }
	pool(1).Trouble = "no route to host"
	paused := true
	pool(2).Paused = &paused
	pool(3).Reason = "provider cloud-03 is paused by ann"
	for n := range 10 {
		launched(tree, fmt.Sprintf("%010d", n), "in-use", time.Minute, `, "provider": "cloud-04", "pool": "main"`)
	}
	tree.Images[0].Builds[0].Uploads[5].State = zkmodel.UploadDeleting
	tree.Pools = append(tree.Pools[:14], tree.Pools[15:]...) // cloud-07 has no launcher for main
	e, err := tree.ExplainRequest(cfg, r.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range e.Pools {
		got = append(got, fmt.Sprintf("%s/%s %s %s", p.Provider, p.Pool, p.Verdict, p.Why))
	}
	want := []string{
		"cloud-00/main declined pool main: no flavor", "cloud-01/main provider no route to host",
		"cloud-02/main quota its launcher waits for room in it",
		"cloud-03/main paused provider cloud-03 is paused by ann", "cloud-04/main quota the pool: instances: 10 of 10 in use",
		"cloud-05/main image no image is ready there for each label", "cloud-06/main may-serve ", "cloud-07/main not-served no launcher that runs serves it",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("pools are\n%s", strings.Join(got, "\n"))
	}
	if e.Before != 1 || e.Event != "ev-200-0000000005" || e.Age != 3600 || e.Next != "1 requests for its labels are served before it" {
		t.Errorf("%+v", e)
	}
	text := strings.Join(e.Lines(night), "\n")
	for _, part := range []string{
		"Request 200-0000000005 for small\n", "state      requested (1h 0m)", "event      ev-200-0000000005", "  next       1 requests", "cloud-01/main            provider",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	data, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(data), `{"version":"v1","request":"200-0000000005","event_id":"ev-200-0000000005","state":"requested","since":"2026-11-23T02:00:00Z"`) {
		t.Errorf("%s %v", data, err)
	}
}

// A pool whose room is taken by servers that the cloud does not delete says so. Mistakes: it is reported as full; a server that is
// being deleted without an error counts among them.
func TestExplainRequestBesideUndeletedServers(t *testing.T) {
	for name, tc := range map[string]struct {
		more, want string
	}{
		"it fails": {`, "delete_error": "hypervisor is down"`, "undeleted the cloud does not delete the server of node 0000000020 since 2026-11-23 02:59:00 UTC: hypervisor is down"},
		"it works": {"", "quota the pool: instances: 10 of 10 in use"},
	} {
		tree, cfg := site(t, 1, 2)
		r := ask(tree, "200-0000000005", "requested", time.Hour, waits)
		launched(tree, "0000000020", "deleting", time.Minute, `, "provider": "cloud-01", "pool": "main", "external_id": "vm", "resources": {"instances": 10}`+tc.more)
		e, err := tree.ExplainRequest(cfg, r.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s", e.Pools[1].Verdict, e.Pools[1].Why); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Each state has its next step, and who has its lock is told. Mistakes: a request whose launcher
// is gone that waits for it; one that is held by a scheduler, told as if a launcher had it.
func TestExplainRequestNext(t *testing.T) {
	tree, cfg := site(t, 1, 2)
	launched(tree, "0000000042", "building", time.Minute, `, "provider": "cloud-00", "pool": "main", "type": ["small"], "allocated_to": "200-0000000002"`)
	for id, more := range map[string]string{
		"200-0000000001": "requested" + waits, "200-0000000002": "pending" + waits, "200-0000000003": "fulfilled" + waits, "200-0000000004": "failed" + waits,
		"200-0000000005": `requested, "node_types": ["odd"]`, "200-0000000006": "requested" + waits + `, "declined_by": ["cloud-00main", "cloud-01main"]`,
		"200-0000000007": "requested" + waits + `, "provider": "south"`,
	} {
		state, rest, _ := strings.Cut(more, ",")
		ask(tree, id, state, time.Minute, ","+rest)
	}
	held := []recipe.Contender{{Identifier: "nl01"}, {Session: 16}}
	for _, tc := range []struct {
		id    string
		locks []recipe.Contender
		next  string
	}{
		{"200-0000000001", nil, "a launcher accepts it, or says in its log why not"},
		{"200-0000000001", held[1:], "session 10 has its lock"},
		{"200-0000000002", held, "launcher nl01 hands the nodes over when all 1 are ready"},
		{"200-0000000002", nil, "its launcher is gone"},
		{"200-0000000003", nil, "its requestor takes the nodes"},
		{"200-0000000004", nil, "its requestor reads that it has failed"},
		{"200-0000000005", nil, "no pool has its labels"},
		{"200-0000000006", nil, "it fails, as no pool is left"},
		{"200-0000000007", nil, "it fails, as no pool is left"},
	} {
		e, err := tree.ExplainRequest(cfg, tc.id, tc.locks)
		if err != nil || !strings.HasPrefix(e.Next, tc.next) {
			t.Errorf("%s: %q: %v", tc.id, e.Next, err)
		}
		if tc.id == "200-0000000002" && (len(e.Nodes) != 1 || e.Nodes[0].Node != "0000000042") {
			t.Errorf("nodes %+v", e.Nodes)
		}
	}
	_, err := tree.ExplainRequest(cfg, "200-000000001", nil)
	if !errors.Is(err, zkmodel.ErrNotFound) || !strings.Contains(err.Error(), `request 200-000000001 not found (did you mean "200-0000000001"?); these are:`) {
		t.Error(err)
	}
}

// A node's life, and what comes next. Mistakes: a node of a dead launcher that is told to boot; an
// upload that is gone, told as there; a hold without its end.
func TestExplainNode(t *testing.T) {
	tree, cfg := site(t, 1, 2)
	cfg.Labels[0].MaxReadyAge = 2 * time.Hour
	ask(tree, "200-0000000001", "fulfilled", time.Minute, waits)
	upload := zkmodel.UploadPath("debian-00", "0000000001", "cloud-01", "0000000001")
	held := []recipe.Contender{{Identifier: "nl01"}}
	for n, tc := range []struct {
		state, more string
		locks       []recipe.Contender
		text        []string
	}{
		{"building", "", held, []string{"its launcher boots it, and gives it to the stock", "lock       nl01"}},
		{"building", "", nil, []string{"its launcher is gone: another one of cloud-01"}},
		{"building", fmt.Sprintf(`, "asked_time": %d`, night.Add(-time.Minute).Unix()), held, []string{"the cloud was asked for its machine", "(1m 0s), and the cloud has not answered"}},
		{"ready", fmt.Sprintf(`, "image_id": %q`, upload), nil, []string{"debian-00-0000000001, upload 0000000001 (ready)", "it is deleted in 1h 0m (max-ready-age)"}},
		{"ready", `, "image_id": "` + strings.Replace(upload, "images/0000000001", "images/0000000009", 1) + `"`, nil, []string{"upload 0000000009 (gone)"}},
		{"ready", `, "image_id": "plain", "allocated_to": "200-0000000001"`, nil, []string{"the requestor of 200-0000000001 takes it", "plain of the cloud", "event      ev-200-0000000001"}},
		{"ready", `, "allocated_to": "200-0000000009"`, nil, []string{"its request is gone"}},
		{"in-use", "", held, []string{"when who uses it gives it back"}},
		{"in-use", "", nil, []string{"has let go of its lock"}},
		{"used", "", nil, []string{"a launcher of cloud-01 deletes it"}},
		{"failed", `, "reason": "no route to host"`, nil, []string{"reason     no route to host"}},
		{"hold", `, "comment": "poolkeeper:ann@desk: odd", "hold_expiration": 7200`, nil, []string{"a launcher deletes it after 2026-11-23T04:00:00Z", "poolkeeper:ann@desk: odd"}},
		{"hold", "", nil, []string{"it stays until node-delete"}},
		{"in-use", `, "user_data": "{\"owner\": \"NodePool:metastatic:slots\", \"label\": \"slot\", \"slots\": 4, \"failed\": true}"`, held, []string{
			"a launcher of slots gives it back when nobody has used its slots", "backs      label slot of provider slots, 0 of 4 slots used; it has failed",
		}},
		{"in-use", `, "driver_data": {"backing_node": "0000000077", "slot": 3}`, held, []string{"slot       3 of backing node 0000000077"}},
		{"building", `, "allocated_to": "200-0000000009"`, held, []string{"request 200-0000000009 is deleted, so another request gets it"}},
		{"odd", "", nil, []string{"nobody of this release knows the state odd"}},
	} {
		id := fmt.Sprintf("%010d", n)
		node := launched(tree, id, tc.state, time.Hour, `, "provider": "cloud-01", "pool": "main", "type": ["small"]`+tc.more)
		node.Locked = tc.locks != nil
		e, err := tree.ExplainNode(cfg, id, tc.locks)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(e.Lines(night), "\n")
		for _, part := range tc.text {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in\n%s", part, text)
			}
		}
	}
	if _, err := tree.ExplainNode(cfg, "42", nil); !errors.Is(err, zkmodel.ErrNotFound) || strings.Count(err.Error(), "00000000") > 11 {
		t.Error(err)
	}
}

// Mistake: a configuration that is not in effect, or half left out, on a site that is told to be well.
func TestConfigurationIsToldOf(t *testing.T) {
	tree, cfg := site(t, 1, 2)
	tree.Guarded = []string{"providers.a.pools.main.max-servers stays 2 (launcher on nl01)"}
	tree.LeftOut = []string{"image suse: no such element", "label tiny: it is given twice"}
	r := New(tree, cfg)
	var text strings.Builder
	if err := r.Write(&text, Page{Width: 132}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"max-servers stays 2 (launcher on nl01)", "image suse: no such element", "label tiny: it is given twice", "$ poolkeeper config-validate"} {
		if r.State != Attention || !strings.Contains(text.String(), part) {
			t.Errorf("%q is missing in\n%s", part, text.String())
		}
	}
}
