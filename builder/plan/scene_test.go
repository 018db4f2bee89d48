package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// noon is when the scenes play.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

// scene makes an Input from a few words.
type scene struct {
	Input
	zxid int64
}

// newScene has the image "img" at providers "north" (qcow2) and "south" (raw),
// and no builds.
func newScene(change ...func(*scene)) *scene {
	s := &scene{Input: Input{
		Config: &configs.Config{
			DiskImages: []configs.DiskImage{{
				Name: "img", RebuildAge: 24 * time.Hour, RebuildTimezone: "UTC", KeepBuilds: 2,
			}},
			Providers: []configs.Provider{
				{Name: "north", ImageFormat: "qcow2", ImageUploadTimeout: time.Hour, DiskImages: []configs.ProviderImage{{Name: "img"}}},
				{Name: "south", ImageFormat: "raw", ImageUploadTimeout: time.Hour, DiskImages: []configs.ProviderImage{{Name: "img"}}},
			},
			BuildDiskReserve: 1 << 30,
		},
		Image:  &zkmodel.Image{Name: "img"},
		Host:   Host{Name: "me.example.org", ID: "my-id", Arch: "amd64", Free: -1},
		Others: Others{Alive: map[string]bool{"me": true, "other": true}, Since: noon()},
		Now:    noon(),
		Policy: DefaultPolicy(),
	}}
	for _, c := range change {
		c(s)
	}
	return s
}

func (s *scene) image() *configs.DiskImage { return &s.Config.DiskImages[0] }

func (s *scene) next() int64 { s.zxid++; return s.zxid }

// request sets the flag that asks for a build.
func (s *scene) request() {
	s.Image.BuildRequested = &recipe.Stat{Czxid: s.next(), Ctime: s.Now}
}

// build adds a build of this host, made some time ago, with its files here.
func (s *scene) build(state zkmodel.BuildState, ago time.Duration, change ...func(*zkmodel.Build)) *zkmodel.BuildTree {
	id := fmt.Sprintf("%010d", len(s.Image.Builds)+1)
	b := &zkmodel.BuildTree{Build: &zkmodel.Build{
		Image: "img", ID: id, State: state, StateTime: zkmodel.EpochOf(s.Now.Add(-ago)),
		Builder: s.Host.Name, BuilderID: s.Host.ID, Formats: zkmodel.Formats{"qcow2", "raw"},
		Stat: recipe.Stat{Czxid: s.next(), Ctime: s.Now.Add(-ago)},
	}}
	for _, c := range change {
		c(b.Build)
	}
	if b.Builder != s.Host.Name && b.BuilderID == s.Host.ID {
		b.BuilderID = b.Builder + "-id"
	}
	s.Image.Builds = append(s.Image.Builds, b)
	if b.Builder == s.Host.Name {
		formats := []string(b.Formats)
		if state != zkmodel.BuildReady {
			formats = nil
		}
		s.Local = append(s.Local, LocalBuild{ID: id, Ours: true, Formats: formats})
	}
	return b
}

// upload adds an upload of a build.
func (s *scene) upload(b *zkmodel.BuildTree, provider string, state zkmodel.UploadState, change ...func(*zkmodel.Upload)) {
	u := &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Image: "img", Build: b.ID, Provider: provider, ID: fmt.Sprintf("%010d", len(b.Uploads)+1)},
		State:     state, StateTime: zkmodel.EpochOf(s.Now), Builder: s.Host.Name,
		Stat: recipe.Stat{Czxid: s.next()},
	}
	if state == zkmodel.UploadReady {
		u.ExternalID = zkmodel.TextValue("id")
	}
	for _, c := range change {
		c(u)
	}
	b.Uploads = append(b.Uploads, u)
}

// everywhere adds ready uploads of a build to both providers.
func (s *scene) everywhere(b *zkmodel.BuildTree) {
	s.upload(b, "north", zkmodel.UploadReady)
	s.upload(b, "south", zkmodel.UploadReady)
}

// uploaded adds a ready build that is everywhere.
func (s *scene) uploaded(ago time.Duration) *zkmodel.BuildTree {
	b := s.build(zkmodel.BuildReady, ago)
	s.everywhere(b)
	return b
}

// brief is a plan in a few words, sorted.
func brief(p Plan) string {
	var list []string
	for _, a := range p.Actions {
		parts := []string{string(a.Kind)}
		for _, part := range []string{strings.TrimLeft(a.Build, "0"), a.Provider, strings.TrimLeft(a.Upload, "0"), a.Format} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		list = append(list, strings.Join(parts, " "))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// why is the reason of the first action of a kind.
func why(p Plan, kind Kind) string {
	for _, a := range p.Actions {
		if a.Kind == kind {
			return a.Why
		}
	}
	return ""
}

// play checks a table of scenes and what is to be done in each.
func play(t *testing.T, scenes map[string]struct {
	set  func(s *scene)
	want string
},
) {
	t.Helper()
	for name, c := range scenes {
		t.Run(name, func(t *testing.T) {
			s := newScene(c.set)
			got := Decide(s.Input)
			if brief(got) != c.want {
				_, verdicts := Explain(s.Input)
				t.Errorf("got  %s\nwant %s\n%+v", brief(got), c.want, verdicts)
			}
		})
	}
}
