package nodes

import (
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestWhatARequestWaitsFor(t *testing.T) {
	asked := func(id, extra string) *zkmodel.Request {
		return zkmodel.DecodeRequest(id, []byte(`{"state": "requested", "node_types": ["small", "large"]`+extra+`}`), recipe.Stat{})
	}
	pool := func(labels string) *zkmodel.Component {
		return zkmodel.DecodeComponent("p", []byte(`{"kind": "pool", "state": "running", "supported_labels": [`+labels+`]}`))
	}
	node := func(id, extra string) *zkmodel.Node {
		return zkmodel.DecodeNode(id, []byte(`{"state": "building", "provider": "north"`+extra+`}`), recipe.Stat{})
	}
	r := asked("200-0000000002", "")
	pending := asked("200-0000000002", "")
	pending.State = zkmodel.RequestPending
	pools := []*zkmodel.Component{pool(`"small"`), pool(`"small", "large"`)}
	troubled := zkmodel.DecodeComponent("p", []byte(`{"kind": "pool", "state": "running", "provider_name": "south",
		"supported_labels": [], "troubled_labels": ["large", "small"], "trouble": "no such cloud"}`))
	for want, v := range map[string]requestView{
		"request 200-0000000002 waits: no launcher runs":                             {request: r},
		"request 200-0000000002 waits: no launcher that runs serves small, large":    {request: r, pools: pools[:1]},
		"request 200-0000000002 waits: one request is served before it":              {request: r, pools: pools, requests: []*zkmodel.Request{asked("100-0000000009", ""), r}},
		"request 200-0000000002 waits: no such cloud":                                {request: r, pools: append([]*zkmodel.Component{troubled}, pools[:1]...)},
		"request 200-0000000002 waits: a launcher has it to decide":                  {request: r, pools: pools, requests: []*zkmodel.Request{r}},
		"request 200-0000000002 waits: the pool is full; one request is served befo": {request: r, pools: pools, why: "the pool is full", requests: []*zkmodel.Request{asked("1", ""), r}},
		"request 200-0000000002 is pending; node 0000000007 at north is building, machine m1, address 10.0.0.1": {
			request: pending, pools: pools,
			nodes: []*zkmodel.Node{
				node("0000000006", `, "allocated_to": "200-0000000001"`),
				node("0000000007", `, "allocated_to": "200-0000000002", "external_id": "m1", "interface_ip": "10.0.0.1"`),
			},
		},
	} {
		if got := v.text(); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhatALabelWaitsFor(t *testing.T) {
	cfg := &configs.Config{Providers: []configs.Provider{
		{Name: "north", Pools: []configs.Pool{{Labels: []configs.PoolLabel{{Name: "small", DiskImage: "tiny"}, {Name: "other", DiskImage: "none"}}}}},
		{Name: "south", Pools: []configs.Pool{{Labels: []configs.PoolLabel{{Name: "small", DiskImage: "tiny"}, {Name: "cloudy", CloudImage: "debian"}}}}},
	}}
	build := func(state string) *zkmodel.BuildTree {
		return &zkmodel.BuildTree{Build: zkmodel.DecodeBuild("tiny", "0000000001", []byte(`{"state": "`+state+`", "reason": "no disk"}`), recipe.Stat{})}
	}
	sent := func(provider, state string) *zkmodel.BuildTree {
		b := build("ready")
		key := zkmodel.UploadKey{Image: "tiny", Build: b.ID, Provider: provider, ID: "0000000003"}
		b.Uploads = []*zkmodel.Upload{zkmodel.DecodeUpload(key, []byte(`{"state": "`+state+`", "reason": "no quota"}`), recipe.Stat{})}
		return b
	}
	for name, c := range map[string]struct {
		label, provider string
		builds          []*zkmodel.BuildTree
		noBuilder       string
		want            string
	}{
		"nothing yet":               {"small", "", nil, "", "no image for small is ready yet; image tiny: no build has begun"},
		"no builder":                {"small", "", nil, "no builder runs", "no image for small is ready yet; image tiny: no build has begun; no builder runs"},
		"building":                  {"small", "", []*zkmodel.BuildTree{build("building")}, "", "no image for small is ready yet; image tiny: build 0000000001 is building"},
		"failed":                    {"small", "", []*zkmodel.BuildTree{build("failed")}, "", "no image for small is ready yet; image tiny: build 0000000001 failed: no disk"},
		"uploading":                 {"small", "north", []*zkmodel.BuildTree{sent("north", "uploading")}, "", "no image for small is ready yet; image tiny: upload 0000000003 of build 0000000001 to north is uploading"},
		"not uploaded":              {"small", "north", []*zkmodel.BuildTree{sent("north", "failed")}, "", "no image for small is ready yet; image tiny: upload 0000000003 of build 0000000001 to north failed: no quota"},
		"ready in another":          {"small", "north", []*zkmodel.BuildTree{sent("south", "ready")}, "", "no image for small is ready yet; image tiny: build 0000000001 is ready"},
		"ready in one":              {"small", "", []*zkmodel.BuildTree{sent("south", "ready")}, "", ""},
		"ready, and a newer one":    {"small", "", []*zkmodel.BuildTree{sent("south", "ready"), build("building")}, "", ""},
		"an image of the cloud's":   {"cloudy", "", nil, "", ""},
		"a label of another's":      {"unknown", "", nil, "", ""},
		"a label, another provider": {"cloudy", "north", nil, "", ""},
	} {
		image := func(string) *zkmodel.Image { return &zkmodel.Image{Name: "tiny", Builds: c.builds} }
		if got := missingImage(c.label, imagesFor(cfg, c.label, c.provider), image, c.noBuilder); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestNoBuilder(t *testing.T) {
	builder := func(host, reason string) *zkmodel.Component {
		return &zkmodel.Component{Hostname: host, Reason: reason}
	}
	for name, c := range map[string]struct {
		builders []*zkmodel.Component
		want     string
	}{
		"none":            {nil, "no builder runs"},
		"two":             {[]*zkmodel.Component{builder("a", ""), builder("b", "")}, ""},
		"one can":         {[]*zkmodel.Component{builder("a", "no disk"), builder("b", "")}, ""},
		"all have failed": {[]*zkmodel.Component{builder("a", "no disk"), builder("b", "no logs")}, "the builder on b builds nothing: no logs"},
	} {
		if got := zkmodel.NoBuilder(c.builders); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhichProvidersBuildersCannotUse(t *testing.T) {
	builders := []*zkmodel.Component{{Hostname: "b0"}, {Hostname: "b1", Troubles: map[string]string{"north": "no such cloud", "east": "unused"}}}
	for want, wanted := range map[string][]imageOf{
		"": {{"south", "tiny"}},
		"the builder on b1 cannot use provider north: no such cloud": {{"south", "tiny"}, {"north", "tiny"}},
	} {
		if got := noProvider(wanted, builders); got != want {
			t.Errorf("%v: %q, want %q", wanted, got, want)
		}
	}
}
