package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// Three builds in four providers: the second is the canary in one, has retreated in another, waits
// for people in a third, and in the fourth a launcher knows no canaries; the third waits for the
// canary. Mistakes: a canary that shows as any ready upload, without its figures; one that
// waits and shows as an upload under way, or as one that nobody tries; a question that is
// nowhere told; a verdict that shows as a canary.
func TestCanariesOnThePage(t *testing.T) {
	ready, sent := ago("ready", 3*time.Hour), ago("uploading", 2*time.Hour)
	everywhere := map[string]string{"east": ready, "north": ready, "south": ready, "west": ready}
	first, second := buildIn("0000000001", 1, everywhere), buildIn("0000000002", 2, everywhere)
	third := buildIn("0000000003", 3, map[string]string{"north": sent})
	image := &zkmodel.Image{
		Name: "image", Builds: []*zkmodel.BuildTree{first, second, third},
		Verdicts: &zkmodel.Verdicts{List: []zkmodel.Verdict{{
			Kind: zkmodel.Retreated, Provider: "south", Build: "0000000002", BuildCzxid: 2, By: "canary", Reason: "of 5 nodes 5 did not boot", Time: zkmodel.EpochOf(captured),
		}}},
	}
	for n, p := range []string{"east", "north", "south", "west"} {
		c := zkmodel.NewCanary(p, "image", first.Build)
		if p == "north" || p == "west" {
			c = c.Begin(second.Uploads[n], second.Build, zkmodel.EpochOf(captured))
			c.Trial.Nodes = 4
			c.Counts = map[string]zkmodel.CanaryCounts{"l1": {Trial: c.Trial.BuildRef, Since: c.Trial.Since, Canary: zkmodel.Tally{Served: 2, Short: 1}, Previous: zkmodel.Tally{Nodes: 60}}}
		}
		if p == "west" {
			c = c.Ask(zkmodel.EpochOf(captured), "too few")
		}
		image.Canaries = append(image.Canaries, c)
	}
	waits := zkmodel.WaitingValidation("it waits until build 0000000002, the canary, is decided")
	waits.Image, waits.Build, waits.Provider, waits.Upload, waits.UploadCzxid = "image", "0000000003", "north", "0000000001", 30
	var pools []*zkmodel.Component
	for p, knows := range map[string]string{"east": "verdicts", "north": "canary", "south": "canary", "west": "canary"} {
		pools = append(pools, component(zkmodel.KindPool, fmt.Sprintf(`"hostname": "l1", "provider_name": %q, "name": "main", "state": "running", "knows": [%q, "verdicts"]`, p, knows)))
	}
	tree := still([]*zkmodel.Image{image}, nil, nil, append(pools, everybody...)...)
	tree.Validations = func(string) ([]*zkmodel.Validation, error) { return []*zkmodel.Validation{waits}, nil }
	o := Options{Tree: tree, Now: clock(captured)}
	var troubles []string
	for _, t := range newHandler(o).site.Items() {
		troubles = append(troubles, listing.Words(": ", t.What, t.Why))
	}
	figures := "canary: of 4 nodes 0 did not boot, 0 showed no host keys, 1 were given back at once, 2 served; of the build before: of 60 nodes"
	asks := "it waits for a decision (image-promote or image-reject)"
	want := []string{
		"Image image in east serves without being a canary first: " + zkmodel.CanariesRefused(pools, "east"),
		"Image image-0000000002 in south was retreated, build 0000000001 serves: retreated by canary: of 5 nodes 5 did not boot",
		"Image image-0000000002 in west is a canary that has not served enough: " + image.Canary("west").Uses(second.Build),
	}
	if diff := cmp.Diff(want, troubles); diff != "" {
		t.Errorf("troubles (-want +got):\n%s", diff)
	}
	page := shown(get(t, o, "/images"))
	for _, want := range []string{
		`north <span class="st busy">canary</span>`, figures, `west <span class="st busy">canary</span>`, asks,
		`north <span class="st busy">waits</span>`, "it waits until build 0000000002, the canary, is decided",
		`south <span class="st bad">retreated</span>`, "it waits to be the canary",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, `<span class="st busy">canary</span>`); n != 3 { // in the east it waits to be one
		t.Errorf("%d uploads are canaries", n)
	}
}
