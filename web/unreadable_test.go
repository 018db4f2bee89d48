package web

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// followed serves a tree as a daemon does that begins now.
func followed(t *testing.T, root string) Options {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	m := zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartRequests|zkmodel.PartComponents, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	if err := m.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	return Options{Tree: Tree{
		Images: m.Images, Nodes: m.Nodes, Requests: m.Requests, Components: m.Components,
		WaitSynced: m.WaitSynced, WaitFor: m.WaitFor,
	}}
}

// What cannot be read hides nothing else, neither on the page nor in a listing, and is
// marked in both.
func TestUnreadableRecordsHideNothing(t *testing.T) {
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for at, data := range map[string]string{
		zkmodel.BuildPath("alpha", "0000000001"):                         `{"state": "ready", "state_time": 1, "builder": "b-alpha"}`,
		zkmodel.UploadPath("alpha", "0000000001", "north", "0000000007"): `{"state": "ready", "state_time": 1, "external_name": "x-alpha"}`,
		zkmodel.BuildPath("beta", "0000000001"):                          `{"state": "ready", "state_time": 1, "builder": "b-beta"}`,
		zkmodel.UploadPath("beta", "0000000001", "north", "0000000007"):  `{"state": "ready", "state_time": 1, "external_name": "x-beta"}`,
		zkmodel.NodePath("0000000001"):                                   `{"state": "in-use", "state_time": 1, "type": ["n-one"]}`,
		zkmodel.NodePath("0000000002"):                                   `{"state": "in-use", "state_time": 1, "type": ["n-two"]}`,
		zkmodel.RequestPath("100-0000000001"):                            `{"state": "requested", "state_time": 1, "requestor": "r-one", "node_types": ["a"]}`,
		zkmodel.RequestPath("100-0000000002"):                            `{"state": "requested", "state_time": 1, "requestor": "r-two", "node_types": ["a"]}`,
		zkmodel.ComponentsRoot + "/pool/one":                             `{"hostname": "h", "kind": "pool", "state": "running", "supported_labels": ["l-one"]}`,
		zkmodel.ComponentsRoot + "/pool/two":                             `{"hostname": "h", "kind": "pool", "state": "running", "supported_labels": ["l-two"]}`,
	} {
		err := session.EnsurePath(t.Context(), path.Dir(at))
		if err == nil {
			_, err = session.Create(t.Context(), at, nil, recipe.Persistent)
		}
		if err == nil || strings.Contains(err.Error(), "exists") {
			_, err = session.Set(t.Context(), at, []byte(data), recipe.AnyVersion)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	places := map[string][]string{ // and what stands there
		"/":                       {"beta"},
		"/images":                 {"alpha", "beta", "b-alpha", "b-beta"},
		"/builds/beta-0000000001": {"b-beta", "x-beta"},
		"/nodes":                  {"n-one", "n-two"},
		"/requests":               {"r-one", "r-two"},
		"/daemons":                {"l-one", "l-two"},
		"/image-list":             {"x-alpha", "x-beta"},
		"/dib-image-list":         {"b-alpha", "b-beta"},
		"/image-status":           {"alpha", "beta"},
		"/node-list":              {"n-one", "n-two"},
		"/request-list":           {"r-one", "r-two"},
		"/label-list":             {"l-one", "l-two"},
	}
	upload := zkmodel.UploadPath("alpha", "0000000001", "north", "0000000007")
	for part, hides := range map[string][]string{
		zkmodel.NodePath("0000000001"):                  {"n-one"},
		zkmodel.RequestPath("100-0000000001"):           {"r-one"},
		zkmodel.ComponentsRoot + "/pool/one":            {"l-one"},
		zkmodel.ImagePath("alpha"):                      {"b-alpha", "x-alpha"},
		zkmodel.BuildsPath("alpha"):                     {"b-alpha", "x-alpha"},
		zkmodel.BuildPath("alpha", "0000000001"):        {"b-alpha", "x-alpha"},
		zkmodel.ProvidersPath("alpha", "0000000001"):    {"x-alpha"},
		path.Dir(path.Dir(upload)) /* of a provider */ : {"x-alpha"},
		path.Dir(upload):                                {"x-alpha"},
		upload:                                          {"x-alpha"},
	} {
		t.Run(part, func(t *testing.T) {
			allow := zktest.Forbid(t, addr, root, part)
			defer allow()
			o := followed(t, root)
			for place, texts := range places {
				answer := get(t, o, place)
				answer.Expect(t, http.StatusOK)
				marked := false
				for _, text := range texts {
					hidden := slices.Contains(hides, text)
					marked = marked || hidden
					if strings.Contains(answer.Body, text) == hidden {
						t.Errorf("%s: %s in it is %v:\n%s", place, text, !hidden, answer.Body)
					}
				}
				switch {
				case place == "/" && !strings.Contains(answer.Body, "cannot be read"):
					t.Errorf("the page does not mark what cannot be read:\n%s", answer.Body)
				case place == "/" && strings.Contains(answer.Body, "has no ready build"):
					t.Errorf("the page misses a build that may be there:\n%s", answer.Body)
				case place == "/label-list": // its rows are no records
				case strings.Count(place, "/") > 1: // of what can be read
				case place != "/" && marked && !strings.Contains(answer.Body, "broken") && !strings.Contains(answer.Body, "cannot be read"):
					t.Errorf("%s does not mark what cannot be read:\n%s", place, answer.Body)
				}
			}
		})
	}
}
