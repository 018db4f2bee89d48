package attention

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
)

// Mistake: a kind that is told with no words, or with nothing to type.
func TestEveryKindHasWords(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Kind" {
				declared++
			}
		}
		return true
	})
	if declared != len(kinds) {
		t.Errorf("%d kinds, %d have words", declared, len(kinds))
	}
	for kind, words := range kinds {
		if words.many == "" || words.do == "" {
			t.Errorf("%s: %+v", kind, words)
		}
	}
}

// Uploads of three images that two clouds refuse for two reasons, a build that failed, and
// nobody who launches. Mistakes: a line an image; two reasons in one line; the reason of the
// oldest; what is urgent at the end.
func TestAlikeIsFolded(t *testing.T) {
	now := time.Unix(1795161300, 0)
	upload := func(image, provider, why string, ago time.Duration) Item {
		return Item{
			Kind: UploadFailed, What: "Upload of " + image, Why: why, Since: now.Add(-ago),
			Image: image, Build: "0000000001", Provider: provider,
		}
	}
	got := Fold([]Item{
		{Kind: BuildFailed, What: "Build d-0000000002 failed", Why: "exit code 1", Image: "d", Build: "0000000002"},
		upload("a", "north", "north: 503 for a (request 5d7c9e31-0001)", 3*time.Hour),
		upload("b", "north", "north: 503 for b (request 77aa9e31-0002)", time.Minute),
		upload("c", "south", "quota exceeded: 10 of 10", time.Hour),
		upload("a", "north", "north: 503 for a (request 5d7c9e31-0003)", 2*time.Hour),
		upload("c", "north", "north: 503 for c (request 00000031-0003)", 2*time.Hour),
		upload("d", "north", "north: 503 for d (request 00000031-0003)", 2*time.Hour),
		{Kind: NoLauncher, What: "No launcher is running", Urgent: true},
	})
	want := []Group{
		{Kind: NoLauncher, What: "No launcher is running", Do: "systemctl status poolkeeper-launcher", Count: 1, Urgent: true},
		{
			Kind: BuildFailed, What: "Build d-0000000002 failed", Why: "exit code 1", Do: "poolkeeper build-log d-0000000002",
			Count: 1, Images: []string{"d"},
		},
		{
			Kind: UploadFailed, What: "5 uploads failed in north: a, b and 2 more", Why: "north: 503 for b (request 77aa9e31-0002)",
			Do: "poolkeeper image-list --detail --image b", Since: now.Add(-3 * time.Hour), Count: 5, Images: []string{"a", "b", "c", "d"}, Providers: []string{"north"},
		},
		{
			Kind: UploadFailed, What: "Upload of c", Why: "quota exceeded: 10 of 10", Do: "poolkeeper image-list --detail --image c",
			Since: now.Add(-time.Hour), Count: 1, Images: []string{"c"}, Providers: []string{"south"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folded (-want +got):\n%s", diff)
	}
}

// Mistakes: an image whose name is part of a word, which splits what is alike; a name out of
// the tree that runs in the shell of who pastes the line.
func TestNames(t *testing.T) {
	short := []Item{{Kind: UploadFailed, Image: "quota", Why: "quotas: no"}, {Kind: UploadFailed, Image: "b", Why: "quotas: no"}}
	if got := Fold(short); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	bad := Item{Kind: TrialFailed, Image: "x; reboot"}
	good := Item{Kind: BuildFailed, Image: "IMAGES", Build: "0000000001", Provider: "north"}
	if bad.Do() != "poolkeeper image-list --detail --image IMAGE" || good.Do() != "poolkeeper build-log IMAGES-0000000001" {
		t.Errorf("%s\n%s", bad.Do(), good.Do())
	}
}

// Commands that change something. A suggested command only shows.
var changes = regexp.MustCompile(`start|stop|image-(build|promote|rollback|reject|pause|delete)|--broken|--delete|--release|config-accept [^-]`)

// Mistakes: a suggestion to promote a build that was rolled back, to accept a guarded file or to
// delete a record before anything was looked at.
func TestSuggestedCommandsOnlyShow(t *testing.T) {
	for kind, words := range kinds {
		if changes.MatchString(words.do) {
			t.Errorf("%s suggests %q", kind, words.do)
		}
	}
}

// A cloud fails all operations: a launcher, image records and node records report it. Mistakes: an
// item per operation, per pool or per host; no count, no time or not the cloud's own words.
func TestOneItemPerProvider(t *testing.T) {
	now := time.Unix(1795161300, 0)
	ago := func(d time.Duration) zkmodel.Epoch { return zkmodel.EpochOf(now.Add(-d)) }
	pool := func(provider, name, host string, fails map[string]zkmodel.Failing) *zkmodel.Component {
		return &zkmodel.Component{Kind: zkmodel.KindPool, ProviderName: provider, PoolName: name, Hostname: host, Failing: fails}
	}
	site := &Site{
		Now: now, Daemons: []*zkmodel.Component{{Kind: zkmodel.KindLauncher, Hostname: "nl01"}, {Kind: zkmodel.KindBuilder, Hostname: "nb01"}},
		Pools: []*zkmodel.Component{
			pool("north", "main", "nl01", map[string]zkmodel.Failing{"small": {Failed: 3, Since: ago(time.Minute), Last: ago(time.Second), Error: "503 no server"}}),
			pool("north", "big", "nl02", map[string]zkmodel.Failing{"large": {Failed: 2, Since: ago(2 * time.Minute), Last: ago(time.Hour), Error: "old words"}}),
			pool("south", "main", "nl01", nil),
			{Kind: zkmodel.KindPool, ProviderName: "west", Hostname: "nl01", Trouble: "no route to host", TroubleSince: ago(time.Hour)},
		},
		Images: []*zkmodel.Image{{Name: "debian", Builds: []*zkmodel.BuildTree{{
			Build: &zkmodel.Build{Image: "debian", ID: "0000000001", State: zkmodel.BuildReady},
			Uploads: []*zkmodel.Upload{
				{UploadKey: zkmodel.UploadKey{Image: "debian", Build: "0000000001", Provider: "north", ID: "0000000001"}, State: zkmodel.UploadFailed, StateTime: ago(time.Minute), Reason: "413"},
				{UploadKey: zkmodel.UploadKey{Image: "debian", Build: "0000000001", Provider: "west", ID: "0000000001"}, State: zkmodel.UploadDeleting, StateTime: ago(time.Minute), DeleteError: "409 image in use"},
			},
		}}}},
		Nodes: []*zkmodel.Node{
			{ID: "0000000001", Provider: "north", State: zkmodel.NodeDeleting, StateTime: ago(40 * time.Second), DeleteError: "500 cannot delete"},
			{ID: "0000000002", Provider: "south", State: zkmodel.NodeDeleting, StateTime: ago(40 * time.Second)},
			{ID: "0000000003", Provider: "south", State: zkmodel.NodeDeleting, StateTime: ago(55 * time.Second)},
		},
	}
	site.Pools[2].Slow = &zkmodel.Slow{Call: "create server", Since: ago(40 * time.Second)}
	var got []string
	for _, g := range Fold(site.Items()) {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", g.Kind, g.What, now.Sub(g.Since), g.Why))
	}
	want := []string{
		"provider-fails|Provider north: 5 launches failed (label large, small); Upload of debian-0000000001 to north failed; Node 0000000001 in north is not deleted|2m0s|503 no server",
		"provider-fails|Provider south answers slowly (create server); Node 0000000003 in south is not deleted|55s|the call \"create server\" takes longer than 30 s",
		"provider-unusable|Provider west cannot be used by the launcher on nl01; Upload 0000000001 of debian-0000000001 in west is not deleted|1h0m0s|no route to host",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One build that was taken back in three providers is one build.
func TestOneBuildInProviders(t *testing.T) {
	item := func(build, provider string) Item {
		return Item{Kind: Verdict, What: "Image debian-" + build + " in " + provider + " was rejected", Why: "no network", Image: "debian", Build: build, Provider: provider}
	}
	same := Fold([]Item{item("0000000007", "a"), item("0000000007", "b"), item("0000000007", "c")})
	if len(same) != 1 || same[0].What != "1 build was taken back in 3 providers: debian-0000000007" {
		t.Errorf("%+v", same)
	}
	two := Fold([]Item{item("0000000007", "a"), item("0000000008", "b")})
	if len(two) != 1 || two[0].What != "2 builds were taken back in a, b: debian" {
		t.Errorf("%+v", two)
	}
}
