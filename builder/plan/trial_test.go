package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// What becomes of an upload under trial, and of what waits behind it. Mistakes: one that
// nobody tried serves; one whose trial goes on is reclaimed, sent again, or has its build
// built again since its file is gone; a trial in one provider that ends that of another,
// where each is to be tried.
func TestTrialsEnd(t *testing.T) {
	passed := &zkmodel.ValidationResult{State: zkmodel.ValidationPassed}
	for name, c := range map[string]struct {
		change func(s *scene, b *zkmodel.BuildTree, u *zkmodel.Upload, v *zkmodel.Validation)
		want   TrialEnd
	}{
		"it goes on": {func(*scene, *zkmodel.BuildTree, *zkmodel.Upload, *zkmodel.Validation) {}, TrialGoesOn},
		"its builder is gone": {func(s *scene, _ *zkmodel.BuildTree, u *zkmodel.Upload, _ *zkmodel.Validation) {
			u.Builder, s.Others.Alive = "nobody", nil
		}, TrialGoesOn},
		"it takes for ever": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, _ *zkmodel.Validation) {
			s.Now = s.Now.Add(12 * time.Hour)
		}, TrialGoesOn},
		"untried": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.Result = &zkmodel.ValidationResult{State: zkmodel.ValidationUntried}
		}, TrialGoesOn},
		"validated": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) { v.Result = passed }, TrialServes},
		"failed": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.Result = &zkmodel.ValidationResult{State: zkmodel.ValidationFailed}
		}, TrialRejected},
		"promoted": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.Promoted = &zkmodel.Promotion{By: "me"}
		}, TrialServes},
		"validated and rejected by a person": {func(s *scene, b *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.Result = passed
			s.Image.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{{Kind: zkmodel.Rejected, Provider: "north", Build: b.ID, BuildCzxid: b.Stat.Czxid}}}
		}, TrialLeaves},
		"validated, and its build is deleted": {func(_ *scene, b *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.Result, b.State = passed, zkmodel.BuildDeleting
		}, TrialLeaves},
		"the image is not configured": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			s.Config.DiskImages = nil
		}, TrialLeaves},
		"the provider does not list it": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			s.Config.Providers[0].DiskImages = nil
		}, TrialLeaves},
		"no validate any more": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			s.image().Validate = nil
		}, TrialServes},
		"no record": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, _ *zkmodel.Validation) { s.Validations = nil }, TrialLost},
		"the record of an earlier upload": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.UploadCzxid--
			v.Result = passed
		}, TrialLost},
		"good elsewhere, each": {func(s *scene, b *zkmodel.BuildTree, _ *zkmodel.Upload, _ *zkmodel.Validation) {
			s.upload(b, "south", zkmodel.UploadReady)
		}, TrialGoesOn},
		"good nowhere, any": {func(_ *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) { v.AnyOf = true }, TrialGoesOn},
		"no validate any more, but the image is left out": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			s.image().Validate = nil
			s.Config.Freeze(configs.Frozen{Kind: "image", Name: "img"})
		}, TrialGoesOn},
		"good elsewhere, any": {func(s *scene, b *zkmodel.BuildTree, _ *zkmodel.Upload, v *zkmodel.Validation) {
			v.AnyOf = true
			s.upload(b, "south", zkmodel.UploadReady)
		}, TrialServes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(func(s *scene) { s.image().Validate = &configs.Validate{} })
			s.upload(s.build(zkmodel.BuildReady, 2*time.Hour), "north", zkmodel.UploadReady)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.upload(b, "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("id") })
			u := b.Uploads[0]
			v := &zkmodel.Validation{Image: "img", Build: b.ID, Provider: "north", Upload: u.ID, UploadCzxid: u.Stat.Czxid}
			s.Validations = []*zkmodel.Validation{v}
			c.change(s, b, u, v)
			p := Decide(s.Input)
			trial, there := p.Trial(u.UploadKey)
			if !there || trial.End != c.want {
				t.Errorf("it %q (%s), want %q", trial.End, trial.Why, c.want)
			}
			for _, a := range p.Actions {
				if a.Provider == "north" && a.Build == b.ID && a.Kind != ForgetTrial {
					t.Errorf("%s: %s", a.Key(), a.Why)
				}
			}
			if _, asked := p.Find(Action{Kind: Build, Image: "img"}.Key()); asked && c.want == TrialGoesOn && name != "it takes for ever" {
				t.Error("the image is built again meanwhile")
			}
		})
	}
}

// What a canary makes of an upload that is sent, or has passed its trial. Mistakes: one that
// is ready beside a canary; two that are ready at once after it; one that waits for itself, for
// what is rejected or doubted, or no launcher begins, or although no canary is configured; a word of a
// person that waits.
func TestUploadsWaitForTheCanary(t *testing.T) {
	isOver := func(s *scene) { // its upload is of no use, either
		s.Image.Canaries[0] = s.Image.Canaries[0].Drop()
		s.Image.Builds[1].Uploads[0].Suspect = "it does not boot"
	}
	for name, c := range map[string]struct {
		change func(s *scene, b *zkmodel.BuildTree, v *zkmodel.Validation)
		want   TrialEnd
	}{
		"a canary":  {func(*scene, *zkmodel.BuildTree, *zkmodel.Validation) {}, TrialGoesOn},
		"it passed": {func(s *scene, _ *zkmodel.BuildTree, v *zkmodel.Validation) { tried(s, v, zkmodel.ValidationPassed) }, TrialGoesOn},
		"it failed": {func(s *scene, _ *zkmodel.BuildTree, v *zkmodel.Validation) { tried(s, v, zkmodel.ValidationFailed) }, TrialRejected},
		"it passed, no canary": {func(s *scene, _ *zkmodel.BuildTree, v *zkmodel.Validation) {
			tried(s, v, zkmodel.ValidationPassed)
			isOver(s)
		}, TrialServes},
		"none any more": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
		}, TrialServes},
		"none is recorded":   {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) { s.Image.Canaries = nil }, TrialServes},
		"none is configured": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) { s.image().Canary = nil }, TrialServes},
		"none has begun": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Canaries[0] = s.Image.Canaries[0].Drop()
		}, TrialGoesOn},
		"none begins, as nodes cannot boot from it": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Canaries[0] = s.Image.Canaries[0].Drop()
			s.Image.Builds[1].Uploads[0].ExternalID = zkmodel.Value{}
		}, TrialServes},
		"none begins, as a launcher knows none": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Canaries[0], s.NoCanary = s.Image.Canaries[0].Drop(), map[string]bool{"north": true}
		}, TrialServes},
		"a launcher knows none in another provider": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Canaries[0], s.NoCanary = s.Image.Canaries[0].Drop(), map[string]bool{"south": true}
		}, TrialGoesOn},
		"one has begun that a launcher does not know": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.NoCanary = map[string]bool{"north": true}
		}, TrialGoesOn},
		"it is promoted": {func(_ *scene, _ *zkmodel.BuildTree, v *zkmodel.Validation) { v.Promoted = &zkmodel.Promotion{By: "me"} }, TrialServes},
		"a newer one serves": {func(s *scene, b *zkmodel.BuildTree, _ *zkmodel.Validation) {
			s.Image.Canaries[0] = s.Image.Canaries[0].Promote(s.uploaded(time.Minute).Build, "me", "")
		}, TrialServes},
		"the canary is elsewhere": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) { s.Image.Canaries[0].Provider = "south" }, TrialServes},
		"no record":               {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) { s.Validations = nil }, TrialLost},
		"a newer one is next": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
			s.uploaded(time.Minute)
		}, TrialGoesOn},
		"a newer one is suspect": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
			s.uploaded(time.Minute).Uploads[0].Suspect = "it does not boot"
		}, TrialServes},
		"a newer one is rejected": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
			n := s.uploaded(time.Minute)
			s.Image.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{{Kind: zkmodel.Rejected, Provider: "north", Build: n.ID, BuildCzxid: n.Stat.Czxid}}}
		}, TrialServes},
		"a newer one waits, too": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
			waitingUpload(s, zkmodel.WaitingValidation("it waits"))
		}, TrialGoesOn},
		"a newer one is tried yet": {func(s *scene, _ *zkmodel.BuildTree, _ *zkmodel.Validation) {
			isOver(s)
			waitingUpload(s, &zkmodel.Validation{})
		}, TrialServes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(func(s *scene) { s.image().Canary, s.image().KeepBuilds = &configs.Canary{Share: 5}, 4 })
			old, canary := s.uploaded(3*time.Hour), s.uploaded(2*time.Hour)
			s.Image.Canaries = []*zkmodel.Canary{zkmodel.NewCanary("north", "img", old.Build).Begin(canary.Uploads[0], canary.Build, 1)}
			v := zkmodel.WaitingValidation("it waits")
			b := waitingUpload(s, v)
			c.change(s, b, v)
			p := Decide(s.Input)
			trial, there := p.Trial(b.Uploads[0].UploadKey)
			if !there || trial.End != c.want {
				t.Errorf("it %q (%s), want %q", trial.End, trial.Why, c.want)
			}
		})
	}
}

// Builds wait for a canary that nobody begins. Mistake: people are not told why.
func TestWhyNoCanaryBegins(t *testing.T) {
	pinned := "; none becomes the canary while the image is pinned at north"
	for name, c := range map[string]struct {
		change func(s *scene)
		want   string
	}{
		"a launcher is about to": {func(*scene) {}, ""},
		"no launcher is there":   {func(s *scene) { s.Unbegun = map[string]bool{"north": true} }, "; no launcher is registered at north that has one become the canary"},
		"elsewhere is none":      {func(s *scene) { s.Unbegun = map[string]bool{"south": true} }, ""},
		"one is under way, and it is pinned": {func(s *scene) {
			c := s.Image.Builds[1]
			s.Image.Canaries[0] = s.Image.Canaries[0].Begin(c.Uploads[0], c.Build, 1)
			s.pin(s.Image.Builds[0], "north")
		}, "under way"},
		"it is pinned": {func(s *scene) {
			b := s.Image.Builds[0]
			s.Image.Verdicts = &zkmodel.Verdicts{Pins: []zkmodel.Pin{{Provider: "north", Build: b.ID, BuildCzxid: b.Stat.Czxid}}}
		}, pinned},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(func(s *scene) { s.image().Canary = &configs.Canary{} })
			serving, next := s.uploaded(3*time.Hour), s.uploaded(2*time.Hour)
			s.Image.Canaries = []*zkmodel.Canary{zkmodel.NewCanary("north", "img", serving.Build)}
			b := waitingUpload(s, zkmodel.WaitingValidation("it waits"))
			c.change(s)
			want := "it waits until build " + next.ID + ", which is ready and the next canary, is decided" + c.want
			_, all := Explain(s.Input)
			if c.want == "under way" {
				for _, v := range all {
					if v.Rule == "canary" && strings.Contains(v.Detail, "none becomes the canary") {
						t.Errorf("%+v, although one is under way", v)
					}
				}
				return
			}
			if !slices.ContainsFunc(all, func(v Verdict) bool {
				return v.Subject == "upload "+b.ID+"/north/"+b.Uploads[0].ID && v.Rule == "canary" && v.Detail == want
			}) {
				t.Errorf("%q is not among %+v", want, all)
			}
		})
	}
}

// waitingUpload adds a build that is sent to north, and under a trial there.
func waitingUpload(s *scene, v *zkmodel.Validation) *zkmodel.BuildTree {
	b := s.build(zkmodel.BuildReady, time.Hour)
	s.upload(b, "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("id") })
	u := b.Uploads[0]
	v.Image, v.Build, v.Provider, v.Upload, v.UploadCzxid = "img", b.ID, "north", u.ID, u.Stat.Czxid
	s.Validations = append(s.Validations, v)
	return b
}

// tried has an upload be under a trial that has come to something.
func tried(s *scene, v *zkmodel.Validation, state zkmodel.ValidationState) {
	s.image().Validate = &configs.Validate{}
	v.Canary, v.Result = false, &zkmodel.ValidationResult{State: state}
}

// Mistakes: what passed is not seen; what has failed, or of which nobody knows the trial, counts;
// one trial that is enough for all providers is not; nothing is to be tried any more, and it waits.
func TestWhatHasPassed(t *testing.T) {
	at := func(provider string) *zkmodel.Upload {
		return &zkmodel.Upload{
			UploadKey: zkmodel.UploadKey{Image: "a", Build: "1", Provider: provider, ID: "1"},
			State:     zkmodel.UploadUploading, ExternalID: zkmodel.TextValue("id"),
		}
	}
	here, there := at("north"), at("south")
	image := &zkmodel.Image{Name: "a", Builds: []*zkmodel.BuildTree{{Build: &zkmodel.Build{ID: "1"}, Uploads: []*zkmodel.Upload{here, there}}}}
	trial := func(u *zkmodel.Upload, anyOf bool, state zkmodel.ValidationState) *zkmodel.Validation {
		return &zkmodel.Validation{
			Image: "a", Build: "1", Provider: u.Provider, Upload: "1", AnyOf: anyOf, Result: &zkmodel.ValidationResult{State: state},
		}
	}
	proven := &configs.DiskImage{Validate: &configs.Validate{}}
	for name, tc := range map[string]struct {
		config *configs.DiskImage
		all    []*zkmodel.Validation
		want   bool
	}{
		"its record is not seen":   {proven, nil, false},
		"passed":                   {proven, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationPassed)}, true},
		"passed, configuration":    {nil, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationPassed)}, true},
		"failed":                   {&configs.DiskImage{}, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationFailed)}, false},
		"under way":                {proven, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationBooting)}, false},
		"under way, not known":     {nil, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationBooting)}, false},
		"not to be tried any more": {&configs.DiskImage{}, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationBooting)}, true},
		"each, and passed in another": {
			proven, []*zkmodel.Validation{trial(here, false, zkmodel.ValidationBooting), trial(there, false, zkmodel.ValidationPassed)}, false,
		},
		"any, and passed in another": {
			proven, []*zkmodel.Validation{trial(here, true, zkmodel.ValidationBooting), trial(there, true, zkmodel.ValidationPassed)}, true,
		},
		"any, and passed in none": {
			proven, []*zkmodel.Validation{trial(here, true, zkmodel.ValidationBooting), trial(there, true, zkmodel.ValidationUntried)}, false,
		},
	} {
		if got := Passed(tc.config, image, here, tc.all); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	// Where any will do, good means that nodes boot from it there: not another upload here, nor one in doubt.
	any := []*zkmodel.Validation{trial(here, true, zkmodel.ValidationBooting)}
	ready := func(change func(u *zkmodel.Upload)) func() {
		return func() {
			*there = *at("south")
			there.State = zkmodel.UploadReady
			change(there)
		}
	}
	for name, c := range map[string]struct {
		change func()
		want   bool
	}{
		"ready":             {ready(func(*zkmodel.Upload) {}), true},
		"ready, but here":   {ready(func(u *zkmodel.Upload) { u.Provider, u.ID = "north", "2" }), false},
		"it does not boot":  {ready(func(u *zkmodel.Upload) { u.Suspect = "3 boots failed" }), false},
		"it is broken":      {ready(func(u *zkmodel.Upload) { u.Broken = errUnreadable }), false},
		"sent, and untried": {ready(func(u *zkmodel.Upload) { u.State = zkmodel.UploadUploading }), false},
		"it waits for a canary, untried": {ready(func(u *zkmodel.Upload) {
			u.State = zkmodel.UploadUploading
			v := zkmodel.WaitingValidation("")
			v.Image, v.Build, v.Provider, v.Upload = "a", "1", "south", "1"
			any = append(any, v)
		}), false},
		"it was rejected": {ready(func(*zkmodel.Upload) {
			image.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{{Kind: zkmodel.Rejected, Provider: "south", Build: "1"}}}
		}), false},
	} {
		image.Verdicts, any = nil, any[:1]
		c.change()
		if got := Passed(proven, image, here, any); got != c.want {
			t.Errorf("any, and in another provider: %s: %t", name, got)
		}
	}
}
