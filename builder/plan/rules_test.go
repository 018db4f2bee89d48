package plan

import (
	"errors"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

var errUnreadable = errors.New("unreadable")

// No two that would do the same run at once: a build of an image, an upload of a build to a provider whatever its format, and the
// end of an upload, however that comes.
func TestKeys(t *testing.T) {
	for name, pair := range map[string][2]Action{
		"builds":     {{Kind: Build, Image: "i", Build: "1"}, {Kind: Build, Image: "i"}},
		"uploads":    {{Kind: Upload, Image: "i", Build: "1", Provider: "p", Format: "raw", Upload: "7"}, {Kind: Upload, Image: "i", Build: "1", Provider: "p"}},
		"deletions":  {{Kind: DeleteUpload, Image: "i", Build: "1", Provider: "p", Upload: "7"}, {Kind: ReclaimUpload, Image: "i", Build: "1", Provider: "p", Upload: "7"}},
		"judgements": {{Kind: ForgetVerdicts, Image: "i", Build: "1"}, {Kind: ForgetVerdicts, Image: "i"}},
	} {
		if pair[0].Key() != pair[1].Key() {
			t.Errorf("%s: %s is not %s", name, pair[0].Key(), pair[1].Key())
		}
	}
	if got := UploadKey("i", "1", "p"); got != "upload/i/1/p" {
		t.Errorf("an upload is %s", got)
	}
	p := Plan{Actions: []Action{{Kind: Build, Image: "a"}, {Kind: Build, Image: "b"}}}
	if a, there := p.Find("build/b"); !there || a.Image != "b" {
		t.Errorf("finds %+v, %t", a, there)
	}
	if _, there := p.Find("build/c"); there {
		t.Error("finds what is not there")
	}
	if _, there := p.Trial(zkmodel.UploadKey{}); there {
		t.Error("finds a trial that is not there")
	}
}

// The next look is the first of the times that are still to come: one of the past would be looked at for ever.
func TestTheFirstTimeToComeIsTheNextLook(t *testing.T) {
	d := newDecision(newScene().Input)
	for _, c := range []struct{ at, want time.Time }{
		{time.Time{}, time.Time{}},
		{noon(), time.Time{}},
		{noon().Add(-hour), time.Time{}},
		{noon().Add(2 * hour), noon().Add(2 * hour)},
		{noon().Add(3 * hour), noon().Add(2 * hour)},
		{noon().Add(hour), noon().Add(hour)},
		{noon().Add(-hour), noon().Add(hour)},
	} {
		if d.at(c.at); !d.plan.Next.Equal(c.want) {
			t.Errorf("after %s the next look is at %s, want %s", c.at, d.plan.Next, c.want)
		}
	}
	for name, c := range map[string]struct {
		set  func(*scene)
		want time.Duration
	}{
		"an upload of another takes long": {func(s *scene) {
			s.Image.Paused = true
			s.upload(s.uploaded(hour), "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) {
				u.Builder, u.StateTime = "other", zkmodel.EpochOf(noon().Add(-20*time.Minute))
			})
		}, 40 * time.Minute},
		"it does so by a clock that is wrong": {func(s *scene) {
			s.Image.Paused, s.Host.ClockOff = true, hour
			s.upload(s.uploaded(hour), "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) {
				u.Builder, u.StateTime = "other", zkmodel.EpochOf(noon().Add(-20*time.Minute))
			})
		}, 40 * time.Minute},
		"its files are with one that is away": {func(s *scene) {
			s.Image.Paused = true
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Builder = "gone" })
		}, 5 * time.Minute},
		"a provider is paused": {func(s *scene) {
			s.Image.Paused = true
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Builder = "other" })
			s.Paused = map[string]*zkmodel.ProviderPause{"north": {Pause: zkmodel.Pause{Until: zkmodel.EpochOf(noon().Add(hour))}}}
		}, hour},
	} {
		if got := Decide(newScene(c.set).Input).Next; !got.Equal(noon().Add(c.want)) {
			t.Errorf("%s: looks again at %s, want in %s", name, got, c.want)
		}
	}
}

// What is done tells how often it failed before, of which image it is, and whether it is tried before it serves.
func TestActionsTell(t *testing.T) {
	s := newScene(func(s *scene) {
		s.uploaded(30 * hour)
		s.build(zkmodel.BuildFailed, 20*hour, func(b *zkmodel.Build) { b.Failures = 6 })
		s.upload(s.Image.Builds[0], "east", zkmodel.UploadReady)
	})
	a, there := Decide(s.Input).Find("build/img")
	if !there || a.Failures != 6 || a.Image != "img" || a.Requested {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct {
		validate *configs.Validate
		good     bool // in the other provider
		want     bool
	}{
		{nil, false, false},
		{&configs.Validate{}, true, true},
		{&configs.Validate{Any: true}, false, true},
		{&configs.Validate{Any: true}, true, false},
	} {
		s := newScene(func(s *scene) { s.image().Validate = c.validate })
		b := s.build(zkmodel.BuildReady, hour)
		if c.good {
			s.upload(b, "south", zkmodel.UploadReady)
		}
		if a, _ := Decide(s.Input).Find(UploadKey("img", b.ID, "north")); a.Tried != c.want || a.Kind != Upload {
			t.Errorf("%+v, good elsewhere %t: %+v", c.validate, c.good, a)
		}
	}
}

// Rules at their edges; what is wanted follows from what each says.
func TestRules(t *testing.T) {
	theirs := func(age time.Duration) func(*zkmodel.Upload) {
		return func(u *zkmodel.Upload) { u.Builder, u.StateTime = "other", zkmodel.EpochOf(noon().Add(-age)) }
	}
	play(t, map[string]struct {
		set  func(s *scene)
		want string
	}{
		"who builds clears the request that it serves": {func(s *scene) {
			s.request()
			s.uploaded(hour)
			s.InFlight.Builds = "0000000007"
		}, ""},
		"a file that is gone is no reason where part is unread": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour)
			s.Local[0].Formats, s.Image.Unread = nil, recipe.ErrUnread
		}, ""},
		"just enough space": {func(s *scene) { s.Host.Free = 1 << 30 }, "build"},
		"a byte too little": {func(s *scene) { s.Host.Free = 1<<30 - 1 }, ""},
		"a build that is deleted has not failed": {func(s *scene) {
			s.build(zkmodel.BuildDeleting, 0)
		}, "build; delete-build 1; remove-files 1"},
		"a broken record is no ready build": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Broken, b.Stat.Version = errUnreadable, 1 })
		}, "build"},
		"a record that cannot be read stays, without uploads, too": {func(s *scene) {
			s.uploaded(hour)
			s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Stat.Version, b.Builder = errUnreadable, 1, "" })
		}, ""},
		"an empty record goes where nothing is left of its build": {func(s *scene) {
			s.uploaded(hour)
			b := s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Builder = errUnreadable, "" })
			s.Local = append(s.Local, LocalBuild{ID: b.ID})
		}, "delete-build 2"},
		"it stays with a manifest": {func(s *scene) {
			s.uploaded(hour)
			b := s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Builder, b.BuilderID = errUnreadable, "", "my-id" })
			s.Local = append(s.Local, LocalBuild{ID: b.ID, Ours: true})
		}, ""},
		"what is built here stays beside a newer one": {func(s *scene) {
			s.uploaded(hour)
			s.InFlight.Builds = s.build(zkmodel.BuildBuilding, 0).ID
			s.build(zkmodel.BuildBuilding, 0, func(b *zkmodel.Build) { b.Builder = "other" })
			s.Image.BuildsLocked = true
		}, ""},
		"a ready build is not what is built here": {func(s *scene) {
			s.image().KeepBuilds = 1
			s.InFlight.Builds = s.uploaded(2 * hour).ID
			s.uploaded(hour)
		}, "delete-upload 1 north 1; delete-upload 1 south 2; mark-build 1"},
		"pinned at a provider that is to have it": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, 4*hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.Local[0].Formats = nil
			s.pin(b, "north")
			s.uploaded(3 * hour)
			s.uploaded(2 * hour)
		}, ""},
		"pinned at a provider that has it, and is not ours": {func(s *scene) {
			b := s.uploaded(4 * hour)
			s.upload(b, "west", zkmodel.UploadReady)
			s.pin(b, "west")
			s.uploaded(3 * hour)
			s.uploaded(2 * hour)
		}, ""},
		"what serves at the second provider until a canary is proven": {func(s *scene) {
			old, c := s.uploaded(7*hour), s.uploaded(6*hour)
			s.uploaded(5 * hour)
			s.uploaded(4 * hour)
			s.Image.Canaries = []*zkmodel.Canary{zkmodel.NewCanary("south", "img", old.Build).Begin(c.Uploads[1], c.Build, 1)}
		}, ""},
		"an upload that is not ready replaces none": {func(s *scene) {
			s.image().KeepBuilds = 1
			s.uploaded(3 * hour)
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.upload(b, "north", zkmodel.UploadFailed)
		}, "delete-upload 1 south 2"},
		"a broken one neither": {func(s *scene) {
			s.image().KeepBuilds = 1
			s.uploaded(3 * hour)
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.upload(b, "north", zkmodel.UploadReady, func(u *zkmodel.Upload) { u.Broken, u.Stat.Version = errUnreadable, 1 })
		}, "delete-upload 1 south 2; upload 2 north qcow2"},
		"no image-upload-timeout": {func(s *scene) {
			s.Config.Providers[0].ImageUploadTimeout = 0
			s.upload(s.uploaded(hour), "north", zkmodel.UploadUploading, theirs(999*hour))
		}, ""},
		"no image-upload-timeout, and a clock that is wrong": {func(s *scene) {
			s.Config.Providers[0].ImageUploadTimeout, s.Host.ClockOff = 0, hour
			s.upload(s.uploaded(hour), "north", zkmodel.UploadUploading, theirs(999*hour))
		}, ""},
		"files of what is not ready are not removed by format": {func(s *scene) {
			s.image().DeleteAfterUpload = true
			s.uploaded(hour)
			s.build(zkmodel.BuildBuilding, 0)
			s.Local[0].Formats, s.Local[1].Formats = nil, []string{"vhd"}
		}, "delete-build 2"},
		"of a failed build nothing is here": {func(s *scene) {
			s.build(zkmodel.BuildFailed, 0)
			s.Local[0].Ours = false
		}, ""},
		"of a failed build a file is here": {func(s *scene) {
			s.build(zkmodel.BuildFailed, 0)
			s.Local[0].Ours, s.Local[0].Formats = false, []string{"raw"}
		}, "remove-files 1"},
		"pinned and lost, and in another format here": {func(s *scene) {
			s.pin(s.build(zkmodel.BuildReady, 6*hour), "north")
			s.Local[0].Formats = []string{"vhd"}
			s.uploaded(5 * hour)
		}, ""},
		"what was said of a build stays where the image is gone, and the build is not": {func(s *scene) {
			s.pin(s.build(zkmodel.BuildReady, 0), "north")
			s.Config.DiskImages, s.Config.Providers, s.Local = nil, nil, nil
		}, "delete-build 1"},
		"what is tried goes with its build": {func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{})
			s.uploaded(20 * time.Minute)
			s.uploaded(10 * time.Minute)
		}, "mark-build 1"},
		"what is tried at a provider that is left out keeps its build": {func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{})
			s.Config.Freeze(configs.Frozen{Kind: "provider image", Provider: "north", Name: "img"})
			s.uploaded(20 * time.Minute)
			s.uploaded(10 * time.Minute)
		}, ""},
	})
}

// What is left of a trial is forgotten once its upload is under trial no more, and not while that cannot be told.
func TestTrialsAreForgotten(t *testing.T) {
	forget := "forget-trial 1 north 1"
	for name, c := range map[string]struct {
		change func(s *scene, b *zkmodel.BuildTree, v *zkmodel.Validation)
		want   string
	}{
		"it goes on":           {func(*scene, *zkmodel.BuildTree, *zkmodel.Validation) {}, ""},
		"the upload is ready":  {func(_ *scene, b *zkmodel.BuildTree, _ *zkmodel.Validation) { b.Uploads[0].State = zkmodel.UploadReady }, forget},
		"the upload is gone":   {func(_ *scene, b *zkmodel.BuildTree, _ *zkmodel.Validation) { b.Uploads = nil }, forget},
		"another is tried now": {func(_ *scene, b *zkmodel.BuildTree, _ *zkmodel.Validation) { b.Uploads[0].Stat.Czxid++ }, forget},
		"the build is gone":    {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) { s.Image.Builds, s.Local = nil, nil }, forget},
		"part is unread": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Builds, s.Local, s.Image.Unread = nil, nil, recipe.ErrUnread
		}, ""},
		"its record is broken":   {func(_ *scene, b *zkmodel.BuildTree, v *zkmodel.Validation) { b.Uploads, v.Broken = nil, errUnreadable }, ""},
		"it is of another image": {func(_ *scene, b *zkmodel.BuildTree, v *zkmodel.Validation) { b.Uploads, v.Image = nil, "other" }, ""},
		"an upload is broken": {func(_ *scene, b *zkmodel.BuildTree, _ *zkmodel.Validation) {
			b.Uploads[0].Broken, b.Uploads[0].Stat.Version = errUnreadable, 1
		}, ""},
	} {
		s := newScene(func(s *scene) { s.image().Validate = &configs.Validate{} })
		v := &zkmodel.Validation{}
		b := waitingUpload(s, v)
		c.change(s, b, v)
		got := ""
		for _, a := range Decide(s.Input).Actions {
			if a.Kind == ForgetTrial {
				got = brief(Plan{Actions: []Action{a}})
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
