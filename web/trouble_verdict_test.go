package web

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What people said of a build stands where not the newest upload serves, with who does not
// heed it. Mistakes: a bad build that is shown as one that does not boot, a launcher of
// another provider that is blamed, a pin that nobody remembers.
func TestVerdictTroubles(t *testing.T) {
	build := func(id string, czxid int64, providers ...string) *zkmodel.BuildTree {
		b := testBuild(id, ago("ready", time.Hour))
		b.Stat.Czxid = czxid
		for _, p := range providers {
			key := zkmodel.UploadKey{Image: "image", Build: id, Provider: p, ID: "0000000001"}
			record := ago("ready", time.Hour) + `, "external_id": "x"`
			if id == "0000000002" && p == "north" {
				record += `, "suspect": "rolled back by ann: no network"`
			}
			b.Uploads = append(b.Uploads, zkmodel.DecodeUpload(key, []byte("{"+record+"}"), recipe.Stat{}))
		}
		return b
	}
	image := &zkmodel.Image{
		Name: "image", Builds: []*zkmodel.BuildTree{build("0000000001", 1, "north", "south", "west"), build("0000000002", 2, "north", "south", "west")},
		Verdicts: &zkmodel.Verdicts{
			List: []zkmodel.Verdict{{
				Kind: zkmodel.RolledBack, Provider: "north", Build: "0000000002", BuildCzxid: 2, By: "ann", Reason: "no network", Time: zkmodel.EpochOf(captured),
			}},
			Pins: []zkmodel.Pin{{Provider: "south", Build: "0000000001", BuildCzxid: 1, By: "bob", Time: zkmodel.EpochOf(captured)}},
		},
	}
	daemons := append([]*zkmodel.Component{
		component(zkmodel.KindPool, `"hostname": "old", "provider_name": "north", "name": "main", "state": "running"`),
		component(zkmodel.KindPool, `"hostname": "new", "provider_name": "north", "name": "main", "state": "running", "knows": ["verdicts"]`),
		component(zkmodel.KindPool, `"hostname": "old", "provider_name": "west", "name": "main", "state": "running"`),
	}, everybody...)
	want := []string{
		"Image image-0000000002 in north was rolled back, build 0000000001 serves: rolled back by ann: no network",
		"The launcher on old goes on with image image-0000000002 in north: it knows no verdicts (poolkeeper image-rollback --delete takes the image out of its reach)",
		"Image image in south is pinned to build 0000000001, build 0000000001 serves: pinned by bob",
	}
	if diff := cmp.Diff(want, troublesOf([]*zkmodel.Image{image}, nil, nil, daemons)); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	page := shown(get(t, Options{Tree: still([]*zkmodel.Image{image}, nil, nil, daemons...), Now: clock(captured)}, "/images"))
	for _, want := range []string{`<span class="st bad">rolled back</span>`, `<span class="st off">build 0000000001 pinned at south</span>`} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page has %d times %q:\n%s", strings.Count(page, want), want, page)
		}
	}
}
