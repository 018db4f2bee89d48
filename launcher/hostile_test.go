package launcher_test

import (
	"fmt"
	"slices"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// write makes a znode of a foreign writer's below a folder.
func (s *site) write(path, data string) {
	s.t.Helper()
	ctx := s.t.Context()
	for _, folder := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot} {
		if err := s.store.Session().EnsurePath(ctx, folder); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.store.Session().Create(ctx, path, []byte(data), recipe.Persistent); err != nil {
		s.t.Fatalf("write %s: %v", path, err)
	}
}

// What stands in a request besides what we need may be anything; and what cannot
// be read stops nobody else.
func TestRequestsOfCarelessWriters(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch()
	for i, data := range []string{``, `null`, `[]`, `7`, `{`, `{}`, `{"state": "dancing"}`, `{"state": 1}`, `{"node_types": ["small"]}`} {
		s.write(zkmodel.RequestPath(fmt.Sprintf("000-%010d", i)), data)
	}
	s.write(zkmodel.RequestPath("odd"), `{}`)
	s.write(zkmodel.RequestPath("1-2-3"), `{"state": "requested"}`)
	for i, rest := range []string{
		`"node_types": ["small"]`,
		`"node_types": "small"`,
		`"node_types": ["small"], "relative_priority": null, "declined_by": null, "nodes": null, "reuse": null`,
		`"node_types": ["small"], "relative_priority": "7", "created_time": "yesterday", "tenant_name": 5`,
		`"node_types": ["small"], "relative_priority": -1.5, "event_id": {}, "requestor": null, "provider": ""`,
		`"node_types": ["small"], "provider": {"a": 1}, "requestor_data": "text", "new key": [1, {"x": null}]`,
		`"node_types": ["small"], "provider": "never-heard-of", "declined_by": ["somebody", "else"], "reuse": "yes"`,
	} {
		id := fmt.Sprintf("100-%010d", i)
		s.write(zkmodel.RequestPath(id), `{"state": "requested", `+rest+`}`)
		if out := s.wait(id); out.State != "fulfilled" || len(out.Nodes) != 1 {
			t.Errorf("%s: %+v", rest, out)
		}
		if err := s.zuul.Cancel(id); err != nil {
			t.Fatal(err)
		}
	}
	for i, rest := range []string{
		`"node_types": []`, `"node_types": null`, `"node_types": [null]`, `"node_types": 5`, `"node_types": ["small", 5]`,
		`"node_types": ["small", "/../x"]`,
	} {
		id := fmt.Sprintf("300-%010d", i)
		s.write(zkmodel.RequestPath(id), `{"state": "requested", `+rest+`}`)
		if out := s.wait(id); out.State != "failed" || out.Reason == "" {
			t.Errorf("%s: %+v", rest, out)
		}
	}
}

// A node's record may be anything, too: what can be read counts and is served,
// what cannot be read takes its place, and stops nobody.
func TestNodesOfCarelessWriters(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.config.Providers[0].Pools[0].MaxServers = 6 // two that are held, one melting, one of which nobody knows
	s.image()
	kept := map[string]string{
		"melting":     `{"state": "melting", "provider": "cloud", "pool": "main", "type": ["small"]}`,
		"nobody's":    `{"state": "used", "type": ["small"]}`,
		"null":        `{"state": "used", "provider": null}`,
		"number":      `{"state": "used", "provider": 7}`,
		"no state":    `{"provider": "cloud"}`,
		"held":        `{"state": "hold", "provider": "cloud", "pool": "main", "hold_expiration": "soon", "state_time": "now"}`,
		"held longer": `{"state": "hold", "provider": "cloud", "pool": "main", "hold_expiration": "3600", "state_time": 4e9}`,
	}
	gone := map[string]string{
		"bare":       `{"state": "used", "provider": "cloud"}`,
		"odd id":     `{"state": "used", "provider": "cloud", "external_id": {"a": 1}}`,
		"text type":  `{"state": "failed", "provider": "cloud", "type": "small", "resources": "lots", "launcher": 5}`,
		"held out":   `{"state": "hold", "provider": "cloud", "hold_expiration": "60", "state_time": 1000.5}`,
		"no request": `{"state": "building", "provider": "cloud", "pool": "main", "allocated_to": "200-4711"}`,
	}
	for i, records := range []map[string]string{kept, gone} {
		n := 0
		for _, data := range records {
			s.write(zkmodel.NodePath(fmt.Sprintf("%010d", 100*(i+1)+n)), data)
			n++
		}
	}
	s.write(zkmodel.NodesRoot+"/lost+found", `null`)
	s.launch()
	if err := s.zuul.Run(t.Context(), wish("small", "large"), nil); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == len(kept)+1 }, "only what is to be kept is left")
}

// A label that leaves the configuration takes the requests that wait for it along;
// those that name others go on waiting.
func TestLabelIsRemovedWhileRequestsWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.config.Providers[0].Pools[0].MaxServers = 1
	first := s.launch()
	if out := s.wait(s.submit(wish("small"))); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	large, small := s.submit(wish("large")), s.submit(wish("small"))
	first.stop()
	pool := &s.config.Providers[0].Pools[0]
	pool.Labels = pool.Labels[:1] // small
	s.launch()
	if out := s.wait(large); out.State != "failed" || out.Reason != "no pool has the label large" {
		t.Errorf("%+v", out)
	}
	if r, err := s.store.Request(t.Context(), small); err != nil || r.State != zkmodel.RequestRequested {
		t.Errorf("%+v (%v), want it to wait", r, err)
	}
}

// A flood of requests that are to be declined, in front of one that can be served,
// does not hold it up until all are answered; and all are answered.
func TestFloodOfBrokenRequests(t *testing.T) {
	s := newSite(t, onePool)
	s.image()
	const flood = 1000
	s.write(zkmodel.RequestPath("000-"+fmt.Sprintf("%010d", flood)), `{`)
	var ops []recipe.Op
	for i := range flood {
		ops = append(ops, recipe.OpCreate(zkmodel.RequestPath(fmt.Sprintf("000-%010d", i)), []byte(`{"state": "requested", "node_types": []}`), recipe.Persistent))
	}
	for part := range slices.Chunk(ops, 500) {
		if _, err := s.store.Session().Multi(t.Context(), part...); err != nil {
			t.Fatal(err)
		}
	}
	good := s.submit(wish("small"))
	s.launch()
	if out := s.wait(good); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	answered := func() (count int) {
		list, err := s.store.Requests(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.State == zkmodel.RequestFailed {
				count++
			}
		}
		return count
	}
	if answered() == flood { // how many are is the machine's matter
		t.Errorf("all %d were declined before the one that could be served", flood)
	}
	zktest.Eventually(t, func() bool { return answered() == flood }, "all declined")
}
