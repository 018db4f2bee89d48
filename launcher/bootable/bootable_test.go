package bootable

import (
	"testing"

	"poolkeeper/zkmodel"
)

// tree is an image of some builds; each is a state and the states of its uploads
// to provider p, in the order of their creation.
func tree(builds ...[]string) []*zkmodel.Image {
	image := &zkmodel.Image{Name: "debian"}
	for i, b := range builds {
		id := string(rune('a' + i))
		build := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "debian", ID: id, State: zkmodel.BuildState(b[0])}}
		for j, state := range b[1:] {
			build.Uploads = append(build.Uploads, &zkmodel.Upload{
				UploadKey:  zkmodel.UploadKey{Image: "debian", Build: id, Provider: "p", ID: string(rune('1' + j))},
				State:      zkmodel.UploadState(state),
				ExternalID: zkmodel.TextValue("external"),
			})
		}
		image.Builds = append(image.Builds, build)
	}
	return []*zkmodel.Image{{Name: "alpine"}, image}
}

func TestNewest(t *testing.T) {
	for name, tc := range map[string]struct {
		images []*zkmodel.Image
		want   string
	}{
		"no build":                         {tree(), ""},
		"one":                              {tree([]string{"ready", "ready"}), "a1"},
		"last build, last upload":          {tree([]string{"ready", "ready"}, []string{"ready", "ready", "ready"}), "b2"},
		"failed and deleting do not count": {tree([]string{"ready", "ready", "failed", "deleting", "uploading"}), "a1"},
		"a build that is deleted":          {tree([]string{"ready", "ready"}, []string{"deleting", "ready"}), "a1"},
		"a build without uploads":          {tree([]string{"ready", "ready"}, []string{"ready"}, []string{"building"}), "a1"},
		"nothing ready":                    {tree([]string{"ready", "failed"}, []string{"failed", "ready"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if u := Newest(tc.images, "debian", "p"); u != nil {
				got = u.Build + u.ID
			}
			if got != tc.want {
				t.Errorf("newest is %q, want %q", got, tc.want)
			}
			if u := Newest(tc.images, "debian", "elsewhere"); u != nil {
				t.Errorf("another provider has %v", u.UploadKey)
			}
			if u := Newest(tc.images, "gentoo", "p"); u != nil {
				t.Errorf("another image has %v", u.UploadKey)
			}
		})
	}
}
