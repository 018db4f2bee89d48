package plan

import (
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Nothing follows from a configuration that leaves an item out: what would be
// built, sent or deleted because of what it says, or does not say, stays.
func TestNothingFollowsFromWhatIsLeftOut(t *testing.T) {
	frozen := func(f configs.Frozen) func(*scene) { return func(s *scene) { s.Config.Freeze(f) } }
	for name, test := range map[string]struct {
		change, leave func(*scene)
		without       string // what follows where nothing is left out
	}{
		"image with a bad key": {
			func(s *scene) { s.image().KeepBuilds, s.image().RebuildAge = 1, hour },
			frozen(configs.Frozen{Kind: "image", Name: "img"}),
			"build; delete-upload 1 north 1; delete-upload 1 south 2; mark-build 1",
		},
		"image without a name": {
			func(s *scene) { s.Config.DiskImages = nil },
			frozen(configs.Frozen{Kind: "image"}),
			"delete-upload 1 north 1; delete-upload 1 south 2; delete-upload 2 north 1; delete-upload 2 south 2; mark-build 1; mark-build 2",
		},
		"delete-after-upload": {
			func(s *scene) { s.image().DeleteAfterUpload = true },
			frozen(configs.Frozen{Kind: "provider"}),
			"remove-format 1 qcow2; remove-format 1 raw; remove-format 2 qcow2; remove-format 2 raw",
		},
		"provider's image without a name": {
			func(s *scene) { s.Config.Providers[0].DiskImages = nil },
			frozen(configs.Frozen{Kind: "provider image", Provider: "north"}),
			"delete-upload 1 north 1; delete-upload 2 north 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(test.change)
			s.uploaded(3 * hour)
			s.uploaded(2 * hour)
			if got := brief(Decide(s.Input)); got != test.without {
				t.Errorf("where nothing is left out: %q, want %q", got, test.without)
			}
			test.leave(s)
			if got := Decide(s.Input); brief(got) != "" {
				t.Errorf("got %q", brief(got))
			}
			s.Image.Builds[0].State = zkmodel.BuildDeleting
			if got := brief(Decide(s.Input)); !strings.Contains(got, "delete-upload 1 north 1") || !strings.Contains(got, "remove-files 1") {
				t.Errorf("what an operator has ordered is not done: %q", got)
			}
		})
	}
}

// A provider that is left out keeps its uploads, and gets none.
func TestProviderThatIsLeftOut(t *testing.T) {
	for name, f := range map[string]configs.Frozen{
		"provider":       {Kind: "provider", Name: "north"},
		"provider image": {Kind: "provider image", Provider: "north", Name: "img"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(func(s *scene) { s.image().KeepBuilds = 1; s.Config.Freeze(f) })
			s.uploaded(3 * hour)
			s.upload(s.build(zkmodel.BuildReady, 2*hour), "south", zkmodel.UploadReady)
			if got := brief(Decide(s.Input)); got != "delete-upload 1 south 2" {
				t.Errorf("got %q, want nothing at north", got)
			}
			s.Image.Builds[0].Uploads[0].State = zkmodel.UploadDeleting
			if got := brief(Decide(s.Input)); !strings.Contains(got, "delete-upload 1 north 1") {
				t.Errorf("what an operator has ordered is not done: %q", got)
			}
		})
	}
}
