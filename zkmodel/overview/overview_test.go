package overview

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

var night = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

// site has so many images in so many providers, with a build of each that is as old as
// it may be, and two pools a provider.
func site(t *testing.T, images, providers int) (*Tree, *configs.Config) {
	t.Helper()
	text := "zookeeper-servers: [{host: zk}]\nimages-dir: /images\nlabels: [{name: small}, {name: large}]\ndiskimages:\n"
	tree := &Tree{Now: night}
	listed := ""
	for n := range images {
		name := fmt.Sprintf("debian-%02d", n)
		text += fmt.Sprintf("  - {name: %s, elements: [vm], rebuild-age: 86400}\n", name)
		listed += "{name: " + name + "}, "
		image := &zkmodel.Image{Name: name, Builds: []*zkmodel.BuildTree{build(name, 1, "ready", 20*time.Hour, "")}}
		for p := range providers {
			image.Builds[0].Uploads = append(image.Builds[0].Uploads, upload(name, 1, provider(p), "ready", 19*time.Hour, `, "external_id": "x"`))
		}
		tree.Images = append(tree.Images, image)
	}
	text += "providers:\n"
	for p := range providers {
		text += fmt.Sprintf("  - {name: %s, driver: fake, diskimages: [%s], pools: [{name: main, max-servers: 10, labels: [{name: small, diskimage: debian-00}]}, "+
			"{name: big, max-servers: 5, labels: [{name: large, diskimage: debian-00}]}]}\n", provider(p), listed)
		for _, pool := range []string{"main:small", "big:large"} {
			name, label, _ := strings.Cut(pool, ":")
			tree.Pools = append(tree.Pools, component(zkmodel.KindPool, fmt.Sprintf(
				`"hostname": "nl01", "provider_name": %q, "name": %q, "id": %q, "state": "running", "supported_labels": [%q]`, provider(p), name, provider(p)+name, label)))
		}
	}
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"builder nb01", "builder nb02", "launcher nl01", "launcher nl02"} {
		kind, host, _ := strings.Cut(d, " ")
		tree.Daemons = append(tree.Daemons, zkmodel.Daemon{
			Component: *component(kind, fmt.Sprintf(`"hostname": %q, "state": "running", "version": "1.4"`, host)), Since: night.Add(-time.Hour),
		})
	}
	return tree, cfg
}

func provider(n int) string { return fmt.Sprintf("cloud-%02d", n) }

func record(state string, ago time.Duration, more string) []byte {
	return fmt.Appendf(nil, `{"state": %q, "state_time": %d%s}`, state, night.Add(-ago).Unix(), more)
}

func build(image string, id int, state string, ago time.Duration, more string) *zkmodel.BuildTree {
	return &zkmodel.BuildTree{Build: zkmodel.DecodeBuild(image, fmt.Sprintf("%010d", id), record(state, ago, more), recipe.Stat{Czxid: int64(id)})}
}

func upload(image string, id int, provider, state string, ago time.Duration, more string) *zkmodel.Upload {
	key := zkmodel.UploadKey{Image: image, Build: fmt.Sprintf("%010d", id), Provider: provider, ID: "0000000001"}
	return zkmodel.DecodeUpload(key, record(state, ago, more), recipe.Stat{Czxid: int64(10 * id)})
}

func component(kind, record string) *zkmodel.Component {
	c := zkmodel.DecodeComponent(kind+"0000000000", []byte("{"+record+"}"))
	c.Kind = kind
	return c
}

func node(id int, provider, pool, state string) *zkmodel.Node {
	return zkmodel.DecodeNode(fmt.Sprintf("%010d", id), record(state, time.Minute, fmt.Sprintf(`, "provider": %q, "pool": %q, "type": ["small"]`, provider, pool)), recipe.Stat{})
}

func request(id int, state string, ago time.Duration, labels string) *zkmodel.Request {
	return zkmodel.DecodeRequest(fmt.Sprintf("200-%010d", id), record(state, ago, fmt.Sprintf(`, "node_types": [%q], "requestor": "zuul"`, labels)),
		recipe.Stat{Ctime: night.Add(-ago)})
}

// everything is a site of three images in two providers with one of each.
func everything(t *testing.T) (*Tree, *configs.Config) {
	t.Helper()
	tree, cfg := site(t, 4, 3)
	first, second, third, fourth := tree.Images[0], tree.Images[1], tree.Images[2], tree.Images[3]
	first.Builds = append(first.Builds, build(first.Name, 2, "ready", time.Hour, ""))
	first.Builds[1].Uploads = []*zkmodel.Upload{
		upload(first.Name, 2, "cloud-00", "ready", time.Hour, `, "external_id": "x"`),
		upload(first.Name, 2, "cloud-01", "uploading", time.Minute, `, "progress": {"sent": 43, "total": 100}`),
		upload(first.Name, 2, "cloud-02", "failed", time.Hour, `, "failures": 3, "reason": "Post \"https://c\": 503 Service Unavailable (request 77aa9e31-01)"`),
	}
	second.Builds[0] = build(second.Name, 1, "ready", 3*24*time.Hour, "")
	second.Builds[0].Uploads = []*zkmodel.Upload{upload(second.Name, 1, "cloud-00", "ready", 2*24*time.Hour, `, "external_id": "x"`)}
	second.Builds = append(second.Builds, build(second.Name, 2, "failed", 2*time.Hour, `, "failures": 4, "reason": "disk-image-create: exit code 1: E: no such package"`))
	third.Paused = true
	third.Builds = append(third.Builds, build(third.Name, 2, "building", 12*time.Minute, `, "builder": "nb01"`))
	third.BuildsLocked = true
	fourth.Builds[0].Uploads = fourth.Builds[0].Uploads[:1]
	fourth.Builds[0].Uploads[0] = upload(fourth.Name, 1, "cloud-00", "uploading", time.Minute, `, "external_id": "x"`)
	for n := range 10 {
		tree.Nodes = append(tree.Nodes, node(n, "cloud-00", "main", "in-use"))
	}
	tree.Nodes = append(tree.Nodes, node(20, "cloud-01", "main", "hold"), node(21, "cloud-01", "main", "failed"))
	tree.Pools[2].Trouble, tree.Pools[2].TroubledLabels, tree.Pools[2].SupportedLabels = "connection refused", tree.Pools[2].SupportedLabels, nil
	tree.Requests = []*zkmodel.Request{
		request(1, "requested", 2*time.Hour, "unheard"), request(2, "requested", 5*time.Minute, "large"),
		request(3, "pending", time.Minute, "small"), request(4, "fulfilled", time.Minute, "small"),
	}
	tree.Waves = []*wave.Entry{{
		Wave: wave.Wave{ID: "w1", Jobs: 4, By: "ann", Reason: "openssl", Stat: recipe.Stat{Ctime: night.Add(-time.Hour)}},
		Status: wave.Status{
			State: wave.Processing, Counts: map[wave.State]int{wave.Completed: 2, wave.Failed: 1, wave.Processing: 1},
		},
	}}
	tree.Current = &fleet.Version{Number: 7, Time: night.Add(-time.Hour).Unix()}
	tree.Members = []fleet.Member{{Kind: "builder", Host: "nb02", Number: 6, ID: "x", Reason: "nodepool.yaml:3: no such key"}}
	tree.Limits = map[string]map[string]int{"cloud-00": {"instances": 11, "cores": 40}}
	tree.Sinks = []dispatch.SinkPlace{{Sink: "chat", Letters: 2, Next: night.Add(-time.Hour)}, {Sink: "left", Letters: 1}}
	cfg.Events = &configs.Events{Sinks: []configs.EventSink{{Name: "chat"}}}
	tree.LeftOut = []string{"provider cloud-09: clouds.yaml: a sealed value cannot be read: no key opens it"}
	return tree, cfg
}

// The golden files hold the screen and the JSON. To write them anew:
// UPDATE_GOLDEN=1 go test ./zkmodel/overview.
func TestGolden(t *testing.T) {
	tree, cfg := everything(t)
	quiet, plain := site(t, 40, 15)
	for name, r := range map[string]*Report{"everything": New(tree, cfg), "well": New(quiet, plain)} {
		var text strings.Builder
		if err := r.Write(&text, Page{Width: 80}); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{name + ".txt": text.String()}
		if name == "everything" {
			data, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got[name+".json"] = string(data) + "\n"
		}
		for file, text := range got {
			file = filepath.Join("testdata", file)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file) //nolint:gosec // a golden file
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

// 40 images in 15 clouds on a bad night: a cloud is down, an image fails everywhere, twenty
// builds have failed, 500 requests wait, and names and reasons are long and in Chinese.
// Mistakes: a screen that scrolls, a line that wraps, twenty lines that say the same.
func TestOneScreenWhateverHappens(t *testing.T) {
	tree, cfg := site(t, 40, 15)
	for n, image := range tree.Images {
		image.Builds = append(image.Builds, build(image.Name, 2, "ready", 2*time.Hour, ""))
		for p := range 15 {
			state, more := "ready", `, "external_id": "x"`
			if p == 3 || n == 7 {
				state, more = "failed", fmt.Sprintf(`, "failures": %d, "reason": "云服务不可用 云服务不可用 云服务不可用 云服务不可用 云服务不可用 云服务不可用 %s"`, n+1, image.Name)
			}
			image.Builds[1].Uploads = append(image.Builds[1].Uploads, upload(image.Name, 2, provider(p), state, time.Hour, more))
		}
		if n%2 == 0 {
			image.Builds = append(image.Builds, build(image.Name, 3, "failed", time.Hour, fmt.Sprintf(`, "failures": %d, "reason": "%s: exit code %d"`, n+1, strings.Repeat("x", 200), n)))
		}
		if n%3 == 0 {
			image.Builds[0].Uploads = nil
		}
		if n%5 == 0 {
			image.Paused = true
		}
	}
	for n := range 500 {
		tree.Requests = append(tree.Requests, request(n, "requested", time.Duration(n)*time.Minute, []string{"small", "large", "unheard"}[n%3]))
		tree.Nodes = append(tree.Nodes, node(n, provider(n%15), "main", []string{"in-use", "failed", "hold"}[n%3]))
	}
	for n := range 9 {
		tree.Waves = append(tree.Waves, &wave.Entry{Wave: wave.Wave{ID: fmt.Sprint("wave-", n), Jobs: 40}, Status: wave.Status{State: wave.Pending}})
		tree.Daemons = append(tree.Daemons, zkmodel.Daemon{Component: *component(zkmodel.KindBuilder, fmt.Sprintf(`"hostname": "b%d", "version": "1.%d"`, n, n))})
	}
	r := New(tree, cfg)
	for _, width := range []int{80, 60} {
		var text strings.Builder
		if err := r.Write(&text, Page{Width: width}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if len(lines) > 51 {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			used := 0
			for _, c := range line {
				used += columns(c)
			}
			if used > width {
				t.Errorf("%d columns, at most %d: %s", used, width, line)
			}
		}
	}
	if len(r.Attention) > 15+3 { // one for each provider
		t.Errorf("%d lines need attention", len(r.Attention))
	}
	if r.State != Urgent || r.Requests.Count != 500 {
		t.Errorf("%s, %d requests", r.State, r.Requests.Count)
	}
}

// Mistake: a command that ends in "…", as that about a build of Nodepool's, whose ids are long.
func TestCommandsAreWhole(t *testing.T) {
	do := "poolkeeper image-promote ubuntu-jammy-c0ffd6e2dfb84895ab3732ce08473f97 --provider rackspace-flex-sjc3"
	for width, want := range map[int]string{
		132: "    $ " + do + "\n",
		80:  "    $ poolkeeper image-promote ubuntu-jammy-c0ffd6e2dfb84895ab3732ce08473f97 \\\n      --provider rackspace-flex-sjc3\n",
	} {
		s := &sheet{page: Page{Width: width}}
		if s.command(do); s.text.String() != want {
			t.Errorf("%d columns: %s", width, s.text.String())
		}
	}
}

// Requests wait for what the tree shows. Mistakes: a request for a label that nobody has,
// shown as one that waits for room; a full pool that hides one with room; stock of launchers
// counted as those of people.
func TestWhyRequestsWait(t *testing.T) {
	tree, cfg := site(t, 2, 2)
	cfg.TenantLimits = []configs.TenantLimit{{Tenant: "greedy", Limits: map[string]int{"instances": 1}}}
	stock, greedy := request(9, "requested", time.Hour, "small"), request(8, "requested", time.Hour, "small")
	stock.Requestor, greedy.TenantName = zkmodel.MinReadyRequestor, "greedy"
	tree.Requests = []*zkmodel.Request{stock, greedy, request(1, "requested", time.Minute, "nobodys"), request(2, "pending", time.Minute, "small"), request(3, "requested", time.Minute, "small")}
	theirs := node(99, "cloud-00", "big", "in-use")
	theirs.TenantName = "greedy"
	tree.Nodes = []*zkmodel.Node{theirs}
	causes := func() map[Cause]int {
		t.Helper()
		got := map[Cause]int{}
		for _, w := range New(tree, cfg).Requests.Causes {
			got[w.Cause] = w.Count
		}
		return got
	}
	check := func(want map[Cause]int) {
		t.Helper()
		if diff := cmp.Diff(want, causes()); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
	}
	check(map[Cause]int{NoPool: 1, Launching: 1, Undecided: 1, Tenant: 1})
	for n := range 10 {
		tree.Nodes = append(tree.Nodes, node(n, "cloud-00", "main", "in-use"))
	}
	check(map[Cause]int{NoPool: 1, Launching: 1, Undecided: 1, Tenant: 1}) // the other cloud has room
	tree.Limits = map[string]map[string]int{"cloud-01": {"instances": 0}}
	check(map[Cause]int{NoPool: 1, Launching: 1, Quota: 1, Tenant: 1})
	tree.Images[0].Builds[0].Uploads = nil
	check(map[Cause]int{NoPool: 1, Launching: 1, NoImage: 2})
	yes := true
	for _, p := range tree.Pools {
		p.Paused = &yes
	}
	check(map[Cause]int{NoPool: 1, Launching: 1, NoImage: 2}) // launchers wait for room; no user has paused anything
	tree.Daemons[2].State, tree.Daemons[2].Reason = zkmodel.ComponentPaused, "paused by ann"
	check(map[Cause]int{NoPool: 1, Launching: 1, Paused: 2})
	tree.Daemons[2].State = zkmodel.ComponentRunning
	for _, p := range tree.Pools {
		p.Reason = "provider is paused by ann"
	}
	check(map[Cause]int{NoPool: 1, Launching: 1, Paused: 2})
	for _, p := range tree.Pools {
		p.Trouble, p.TroubledLabels, p.SupportedLabels = "refused", append(p.TroubledLabels, p.SupportedLabels...), nil
	}
	check(map[Cause]int{NoPool: 1, Launching: 1, Provider: 2})
}

// What could not be read is told, and nothing is said to be missing because of it.
func TestUnreadIsNotMissing(t *testing.T) {
	tree, cfg := site(t, 2, 2)
	tree.Images, tree.Daemons, tree.Pools = nil, nil, nil
	tree.Unread = []Unread{{PartImages, recipe.ErrAuth}, {PartDaemons, recipe.ErrAuth}}
	r := New(tree, cfg)
	if r.State != Attention || len(r.Images) > 0 || len(r.Attention) != 1 || r.Attention[0].Count != 2 {
		t.Errorf("%s %+v %+v", r.State, r.Images, r.Attention)
	}
	tree, cfg = site(t, 1, 2)
	tree.Images[0].Unread, tree.Images[0].Builds[0].Uploads = recipe.ErrAuth, nil
	if got := New(tree, cfg).Images[0].Places; got[0].State != Unknown || got[1].State != Unknown {
		t.Errorf("%+v", got)
	}
}

// Mistake: all is well in a tree that nobody serves, as where the last daemon has gone, or the
// chroot is another; a daemon that has no work is missed; one is missed twice.
func TestNobodyServes(t *testing.T) {
	missed := func(tree *Tree, cfg *configs.Config) (kinds []attention.Kind) {
		for _, m := range New(tree, cfg).Attention {
			kinds = append(kinds, m.Kind)
		}
		return kinds
	}
	tree, cfg := site(t, 3, 2)
	daemons, both := tree.Daemons, []attention.Kind{attention.NoLauncher, attention.NoBuilder}
	tree.Daemons, tree.Pools = nil, nil
	if got := missed(tree, cfg); !slices.Equal(got, both) {
		t.Errorf("of a site: %v", got)
	}
	if r := New(&Tree{Now: night}, cfg); r.State != Urgent || !slices.Equal(missed(&Tree{Now: night}, cfg), both) {
		t.Errorf("of an empty tree: %s %v", r.State, missed(&Tree{Now: night}, cfg))
	}
	for n := range cfg.Providers {
		cfg.Providers[n].Pools = nil
	}
	tree.Daemons = daemons[:1]
	if got := missed(tree, cfg); len(got) != 0 {
		t.Errorf("of a site that launches nothing: %v", got)
	}
}

// Mistake: a provider that is out of service, of which status does not tell; one whose pause is
// over; twenty that push all else off the screen.
func TestPausedProviders(t *testing.T) {
	tree, cfg := site(t, 1, 2)
	for n := range 20 {
		tree.Stopped = append(tree.Stopped, &zkmodel.ProviderPause{
			Provider: provider(n), Drain: n == 1,
			Pause: zkmodel.Pause{By: "ann", Reason: "new switches", Until: zkmodel.Epoch(night.Add(2 * time.Hour).Unix())},
		})
	}
	tree.Stopped[2].Until = zkmodel.Epoch(night.Add(-time.Second).Unix())
	var text strings.Builder
	if err := New(tree, cfg).Write(&text, Page{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"PAUSED     1 provider paused by ann: cloud-00, for 2h 0m: new switches\n", "PAUSED     1 provider drained by ann: cloud-01, for", "and 13 more pauses",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "cloud-02") {
		t.Errorf("a pause that is over:\n%s", text.String())
	}
}

// Mistake: an image whose schedule has not come counted as late; one that a pin or a pause
// keeps old counted, too; one that nothing asks for.
func TestFreshness(t *testing.T) {
	for name, test := range map[string]struct {
		age    time.Duration
		change func(*zkmodel.Image, *configs.DiskImage)
		want   Freshness
	}{
		"young":             {23 * time.Hour, nil, Fresh},
		"due, being built":  {27 * time.Hour, nil, Fresh},
		"late":              {31 * time.Hour, nil, Stale},
		"late, paused":      {31 * time.Hour, func(i *zkmodel.Image, _ *configs.DiskImage) { i.Paused = true }, Fresh},
		"nothing asks":      {300 * time.Hour, func(_ *zkmodel.Image, c *configs.DiskImage) { c.RebuildAge = 0 }, Fresh},
		"its schedule asks": {300 * time.Hour, func(_ *zkmodel.Image, c *configs.DiskImage) { c.RebuildAge, c.RebuildSchedule = 0, "0 3 * * *" }, Stale},
		"pinned": {300 * time.Hour, func(i *zkmodel.Image, _ *configs.DiskImage) {
			i.Verdicts = &zkmodel.Verdicts{Pins: []zkmodel.Pin{{Provider: "cloud-00", Build: "0000000001", BuildCzxid: 1}}}
		}, Fresh},
		"nothing there": {time.Hour, func(i *zkmodel.Image, _ *configs.DiskImage) { i.Builds = nil }, Missing},
	} {
		tree, cfg := site(t, 1, 1)
		uploads := tree.Images[0].Builds[0].Uploads
		tree.Images[0].Builds[0] = build("debian-00", 1, "ready", test.age, "")
		tree.Images[0].Builds[0].Uploads, tree.Images[0].Builds[0].Stat.Ctime = uploads, night.Add(-test.age)
		if test.change != nil {
			test.change(tree.Images[0], &cfg.DiskImages[0])
		}
		r := New(tree, cfg)
		if got := r.Images[0].Places[0].State; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		late := slices.ContainsFunc(r.Attention, func(m Matter) bool { return m.Kind == "image-stale" })
		if late != (test.want == Stale) {
			t.Errorf("%s: %+v", name, r.Attention)
		}
	}
}

// Mistake: an image whose uploads the configuration pauses, shown as missing, which needs attention; and one that is missing
// everywhere else, of which nothing is said as one place is paused.
func TestPausedUploadsAreNotMissing(t *testing.T) {
	tree, cfg := site(t, 2, 2)
	for n := range tree.Images {
		tree.Images[n].Builds[0].Uploads = tree.Images[n].Builds[0].Uploads[:1-n] // the first in one provider, the second in none
	}
	for n := range cfg.Providers[1].DiskImages {
		cfg.Providers[1].DiskImages[n].Pause = true
	}
	r := New(tree, cfg)
	if got := []Freshness{r.Images[0].Places[0].State, r.Images[0].Places[1].State, r.Images[1].Places[0].State, r.Images[1].Places[1].State}; !slices.Equal(got, []Freshness{Fresh, Waits, Missing, Waits}) {
		t.Errorf("states %v", got)
	}
	if len(r.Attention) != 1 || r.Attention[0].Kind != attention.Missing || !r.Attention[0].Urgent || !slices.Equal(r.Attention[0].Images, []string{"debian-01"}) {
		t.Errorf("needs attention: %+v", r.Attention)
	}
}

// Clouds fail: requests wait for the provider, in the words of each pool's own cloud, and nodes
// whose deletion nobody confirms are no servers. Mistakes: "paused" or "pools are full" although
// no user paused anything and no server exists; the cause of one pool quoted for another.
func TestFailingCloudsAreTheCause(t *testing.T) {
	tree, cfg := site(t, 1, 3)
	r := ask(tree, "200-0000000001", "requested", time.Minute, `, "node_types": ["small"]`)
	pending := ask(tree, "200-0000000002", "pending", time.Minute, `, "node_types": ["small"]`)
	yes := true
	for n, words := range []string{"503 from the first", "no key pair"} {
		p := tree.Pools[2*n]
		p.Paused = &yes // its launcher waits for room
		p.Failing = map[string]zkmodel.Failing{"small": {Failed: 3, Since: zkmodel.EpochOf(night.Add(-time.Minute)), Last: zkmodel.EpochOf(night), Error: words}}
	}
	for n := range 10 { // all that the third pool may have
		launched(tree, fmt.Sprintf("%010d", n), "deleting", time.Minute, `, "provider": "cloud-02", "pool": "main", "delete_error": "500 from the third"`)
	}
	launched(tree, "0000000099", "building", time.Minute, `, "type": ["small"], "provider": "cloud-00", "pool": "main", "allocated_to": "200-0000000002"`)
	e, err := tree.ExplainRequest(cfg, r.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range e.Pools {
		got = append(got, fmt.Sprintf("%s %s %s", p.Provider, p.Verdict, p.Why))
	}
	want := []string{
		"cloud-00 launch-fails launches for label small have failed 3 times since 02:59:00 UTC: 503 from the first",
		"cloud-01 launch-fails launches for label small have failed 3 times since 02:59:00 UTC: no key pair",
		"cloud-02 undeleted the cloud does not confirm the deletion of its nodes: 500 from the third",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	report := New(tree, cfg)
	if e.Cause != Provider || report.Requests.CauseOf(r.ID) != Provider || report.Requests.CauseOf(pending.ID) != Provider {
		t.Errorf("causes %s, %s, %s", e.Cause, report.Requests.CauseOf(r.ID), report.Requests.CauseOf(pending.ID))
	}
	if used := report.Providers[2].Uses[instances].Used; used != 0 {
		t.Errorf("%d servers in use", used)
	}
	for n := range tree.Nodes {
		tree.Nodes[n] = zkmodel.DecodeNode(tree.Nodes[n].ID, []byte("{"), recipe.Stat{})
	}
	if e, err = tree.ExplainRequest(cfg, r.ID, nil); err != nil || !strings.Contains(e.Pools[2].Why, "11 nodes cannot be read, so each counts as a node: to remove the first: poolkeeper node-delete --broken 0000000000") {
		t.Errorf("%+v, %v", e.Pools[2], err)
	}
}

// A pool has room if neither its own limit nor its provider's is reached. Mistakes: room in a pool of a provider that is
// over its limit, in one that is disabled or that no launcher serves; none with --all.
func TestPoolsWithRoom(t *testing.T) {
	one := 1
	pool := func(provider string, launchers, used int, limit *int) Capacity {
		return Capacity{Provider: provider, Pool: "main", Launchers: launchers, Uses: map[string]Use{instances: {Used: used, Limit: limit}}}
	}
	r := &Report{
		Providers: []Capacity{{Provider: "over", Uses: map[string]Use{instances: {Used: 3, Limit: &one}}}},
		Pools:     []Capacity{pool("over", 1, 3, nil), pool("free", 1, 0, &one), pool("full", 1, 1, &one), pool("none", 0, 0, &one)},
	}
	for _, all := range []bool{false, true} {
		var out strings.Builder
		if err := r.Write(&out, Page{Width: 80, All: all}); err != nil || !strings.Contains(out.String(), "in 4 pools, 1 with room") {
			t.Errorf("--all %t: %v\n%s", all, err, &out)
		}
	}
}
