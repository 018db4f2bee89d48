package web

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// buildIn is a build of the image whose uploads have these records, by provider.
func buildIn(id string, czxid int64, records map[string]string) *zkmodel.BuildTree {
	b := testBuild(id, ago("ready", time.Hour))
	b.Stat.Czxid = czxid
	for _, p := range []string{"east", "north", "south", "west"} {
		if record := records[p]; record != "" {
			key := zkmodel.UploadKey{Image: "image", Build: id, Provider: p, ID: "0000000001"}
			b.Uploads = append(b.Uploads, zkmodel.DecodeUpload(key, []byte("{"+record+`, "external_id": "x"}`), recipe.Stat{Czxid: czxid * 10}))
		}
	}
	return b
}

// Two builds in four providers: one is tried, one waits for over an hour, one has nobody who
// tries, one has failed and is gone. Mistakes: a trial that shows as an upload under way; an
// upload that waits for ever and is nowhere told; a failure that is forgotten with its upload,
// or stands there for ever; a launcher of another provider that counts as one that tries;
// a listing of Nodepool's that is another with trials than without.
func TestTrialsOnThePage(t *testing.T) {
	ready, tried := ago("ready", 2*time.Hour), ago("uploading", 90*time.Minute)
	image := &zkmodel.Image{
		Name: "image", Builds: []*zkmodel.BuildTree{
			buildIn("0000000001", 1, map[string]string{"north": ready, "west": ready}),
			buildIn("0000000002", 2, map[string]string{"north": tried, "south": tried, "east": tried}),
		},
		Verdicts: &zkmodel.Verdicts{List: []zkmodel.Verdict{{
			Kind: zkmodel.Rejected, Provider: "west", Build: "0000000002", BuildCzxid: 2, By: zkmodel.ByValidation,
			Reason: "kernel panic; a node of build 0000000001 does well in the same pool", Time: zkmodel.EpochOf(captured),
		}}},
	}
	trial := func(provider string, r *zkmodel.ValidationResult) *zkmodel.Validation {
		return &zkmodel.Validation{
			Image: "image", Build: "0000000002", Provider: provider, Upload: "0000000001", UploadCzxid: 20,
			Since: zkmodel.EpochOf(captured.Add(-90 * time.Minute)), Result: r,
		}
	}
	trials := []*zkmodel.Validation{
		trial("north", &zkmodel.ValidationResult{State: zkmodel.ValidationControl, Why: "its node failed: no python", Tries: 1, Since: zkmodel.EpochOf(captured.Add(-time.Minute))}),
		trial("south", &zkmodel.ValidationResult{
			State: zkmodel.ValidationUntried, Why: "no room", Since: zkmodel.EpochOf(captured), FirstUntried: zkmodel.EpochOf(captured.Add(-61 * time.Minute)),
		}),
		trial("east", nil),
	}
	pool := func(provider, knows string) *zkmodel.Component {
		return component(zkmodel.KindPool, fmt.Sprintf(`"hostname": "l1", "provider_name": %q, "name": "main", "state": "running", "knows": [%q, "verdicts"]`, provider, knows))
	}
	tree := still([]*zkmodel.Image{image}, nil, nil, append([]*zkmodel.Component{
		pool("north", "validation"), pool("south", "validation"), pool("east", "canary"),
	}, everybody...)...)
	plain := get(t, Options{Tree: tree, Now: clock(captured)}, "/image-list", "Accept", "application/json").Body
	tree.Validations = func(string) ([]*zkmodel.Validation, error) { return trials, errors.New("the rest") }
	o := Options{Tree: tree, Now: clock(captured)}
	troubles := func() (list []string) {
		for _, t := range newHandler(o).site.Items() {
			list = append(list, listing.Words(": ", t.What, t.Why))
		}
		return list
	}
	want := []string{
		"Image image-0000000002 in east is not tried, no build of it serves: " + zkmodel.NobodyTries("east"),
		"Image image-0000000002 in south is not tried, no build of it serves: untried: no room",
		"Image image-0000000002 in west has failed its trial, build 0000000001 serves: kernel panic; a node of build 0000000001 does well in the same pool",
	}
	if diff := cmp.Diff(want, troubles()); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	page := shown(get(t, o, "/images"))
	for _, want := range []string{`north <span class="st busy">on trial</span>`, "nodes failed: 1", "control: its node failed: no python", `east <span class="st busy">on trial</span>`, "not tried yet"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if with := get(t, o, "/image-list", "Accept", "application/json").Body; with != plain || strings.Contains(with, "trial") {
		t.Errorf("Nodepool's listing is\n%s\nwith trials, else\n%s", with, plain)
	}
	image.Builds = append(image.Builds, buildIn("0000000003", 3, map[string]string{"west": ready}))
	if got := troubles(); len(got) != 2 {
		t.Errorf("with a newer build: %q", got)
	}
}
