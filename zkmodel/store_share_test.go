package zkmodel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Daemons are listed with their shares, one of Nodepool's and one whose record is damaged
// beside; places in their order, with what they are for. Catches: a record that hides the
// others, a claim that waits and is shown as if it had a place, and a claim of an older
// release, which says its host alone, that is not shown.
func TestDaemonsAndPlaces(t *testing.T) {
	_, s := connect(t)
	st, ctx := zkmodel.NewStore(s, nil), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	since := zkmodel.EpochOf(time.Now().Add(-time.Hour).Truncate(time.Second))
	ours := &zkmodel.Component{Hostname: "nl01", Kind: zkmodel.KindLauncher, State: zkmodel.ComponentRunning, Shares: map[string]zkmodel.Epoch{"elections/tidy": since}}
	data, err := ours.Encode()
	must(err)
	for _, dir := range []string{zkmodel.ComponentsRoot + "/" + zkmodel.KindBuilder, zkmodel.ComponentsRoot + "/" + zkmodel.KindLauncher} {
		must(s.EnsurePath(ctx, dir))
	}
	for path, data := range map[string]string{
		"launcher/nl010000000000": string(data),
		"launcher/nl020000000001": `{"hostname": "nl02", "kind": "launcher", "model_api": 0, "state": "running", "version": "9"}`,
		"builder/nb010000000000":  "no JSON",
	} {
		_, err := s.Create(ctx, zkmodel.ComponentsRoot+"/"+path, []byte(data), recipe.Ephemeral)
		must(err)
	}
	daemons, err := st.Daemons(ctx)
	must(err)
	got := map[string]map[string]zkmodel.Epoch{}
	for _, d := range daemons {
		if d.Since.IsZero() || (d.Broken != nil) != (d.Kind == zkmodel.KindBuilder) {
			t.Errorf("daemon %+v", d)
		}
		got[d.Name] = d.Shares
	}
	want := map[string]map[string]zkmodel.Epoch{"nl010000000000": ours.Shares, "nl020000000001": nil, "nb010000000000": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("daemons (-want +got):\n%s", diff)
	}

	limits := map[string]int{zkmodel.BuildLimitPath: 2, zkmodel.UploadLimitPath: 1}
	places := func(want ...zkmodel.Place) {
		t.Helper()
		got, err := st.Places(ctx, limits)
		must(err)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(zkmodel.Place{}, "Since")); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
		}
		for _, p := range got {
			if time.Since(p.Since).Abs() > 10*time.Minute {
				t.Errorf("%s of %s since %s", p.Share, p.Host, p.Since)
			}
		}
	}
	places()
	claim := func(path, text string, limit int) *recipe.Held {
		t.Helper()
		held, err := recipe.NewSemaphore(s, path, text, limit).Acquire(ctx, 1)
		must(err)
		return held
	}
	first := claim(zkmodel.BuildLimitPath, zkmodel.ClaimText("nb01.example.org", "builds debian"), 3)
	claim(zkmodel.BuildLimitPath, "nb02.example.org", 3) // of an older release
	claim(zkmodel.BuildLimitPath, zkmodel.ClaimText("nb03.example.org", "builds fedora"), 3)
	for _, provider := range []string{"north", "south"} {
		_, err := recipe.NewLock(s, zkmodel.QuotaLockPath(provider), "nl01.example.org", recipe.EnsureParents()).Acquire(ctx)
		must(err)
	}
	owner := zkmodel.BuilderOwner{Host: "nb01.example.org", ImagesDir: "/var/lib/images", Timeout: time.Second}
	for path, text := range map[string]string{
		zkmodel.BuilderIDPath("an id"): owner.Encode(), zkmodel.OwnRoot + "/fleet/lock": "ann@desk", zkmodel.OwnRoot + "/fleet/decisions": "nb01",
	} {
		_, err := recipe.NewLock(s, path, text, recipe.EnsureParents()).Acquire(ctx)
		must(err)
	}
	id := zkmodel.Place{Share: "builder-ids/an%20id", Kind: zkmodel.KindBuilder, Host: "nb01.example.org", Reason: "its images-dir is /var/lib/images"}
	push := zkmodel.Place{Share: "fleet/lock", Kind: "command", Host: "ann@desk", Reason: "pushes a configuration"}
	quota := func(provider string) zkmodel.Place {
		return zkmodel.Place{Share: "quota/" + provider, Kind: zkmodel.KindLauncher, Host: "nl01.example.org", Reason: "launches nodes"}
	}
	build := func(host, reason string, waits bool) zkmodel.Place {
		return zkmodel.Place{Share: "limits/builds", Kind: zkmodel.KindBuilder, Host: host, Reason: reason, Waits: waits}
	}
	places(build("nb01.example.org", "builds debian", false), build("nb02.example.org", "", false), build("nb03.example.org", "builds fedora", true), quota("north"), quota("south"), id, push)
	must(first.Release(ctx))
	places(build("nb02.example.org", "", false), build("nb03.example.org", "builds fedora", false), quota("north"), quota("south"), id, push)
}
