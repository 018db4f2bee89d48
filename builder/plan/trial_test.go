package plan

import (
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
