package waves_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// sentTo sends a build to a provider where it is tried before it serves; nil has it ready.
func (s *site) sentTo(b *zkmodel.Build, provider string, tried *zkmodel.Validation) *zkmodel.Upload {
	s.t.Helper()
	if tried == nil {
		if err := s.upload(s.t.Context(), s.models, b, provider); err != nil {
			s.t.Fatal(err)
		}
		return nil
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: provider}}
	lock, err := s.models.LockUploads(s.t.Context(), b.Image, b.ID, provider)
	if err == nil {
		err = s.models.CreateUpload(s.t.Context(), lock, u)
	}
	if err == nil {
		u.ExternalID = zkmodel.TextValue("id-" + provider)
		err = s.models.BeginValidation(s.t.Context(), lock, u, tried)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// comesTo writes how far the trial of an upload has come.
func (s *site) comesTo(u *zkmodel.Upload, state zkmodel.ValidationState) {
	s.t.Helper()
	data, err := json.Marshal(zkmodel.ValidationResult{State: state})
	if err == nil {
		path := zkmodel.ValidationResultPath(u.UploadKey)
		if _, err = s.models.Session().Create(s.t.Context(), path, data, recipe.Persistent); err != nil {
			_, err = s.models.Session().Set(s.t.Context(), path, data, recipe.AnyVersion)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// An image is validated and has canaries; another build of it is the canary. A wave counts an
// upload once its trial has passed it, and does not wait for the canary; of several providers
// for any of which one trial will do, what passed in one counts in the other. Mistakes: a job
// that is completed with an upload which is still tried, or not tried at all; one that waits until
// the canary is decided, or is not told that a trial has ended.
func TestWavesOfImagesWithTrialsAndCanaries(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a", "b")
	ctx := t.Context()
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].Validate = &configs.Validate{}
		s.config.DiskImages[i].Canary = &configs.Canary{Share: 5, For: time.Hour, MinNodes: 3, MaxFailures: 5}
	}
	for _, image := range []string{"a", "b"} {
		for _, provider := range []string{"north", "south"} {
			c := &zkmodel.Canary{Provider: provider, Image: image, Trial: &zkmodel.Trial{BuildRef: zkmodel.BuildRef{Build: "other"}}}
			if err := s.models.BeginCanaries(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.create("sent")
	s.create("valid", func(w *wave.Wave) { w.Until = wave.UntilValidated })
	tried := map[string]*zkmodel.Upload{}
	for _, image := range []string{"a", "b"} {
		lock, err := s.models.LockBuilds(ctx, image)
		if err != nil {
			t.Fatal(err)
		}
		b := &zkmodel.Build{Image: image, Builder: "one", Formats: zkmodel.Formats{"qcow2"}}
		if err := s.models.CreateBuild(ctx, lock, b); err != nil {
			t.Fatal(err)
		}
		if err := zkmodel.Move(b, zkmodel.BuildReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
			t.Fatal(err)
		}
		if err := s.models.SaveBuild(ctx, lock, b); err != nil {
			t.Fatal(err)
		}
		_ = lock.Release(ctx)
		validation := func() *zkmodel.Validation {
			return &zkmodel.Validation{BuildCzxid: b.Stat.Czxid, AnyOf: image == "b", Checks: []zkmodel.Check{{Kind: zkmodel.CheckSSH}}}
		}
		if image == "a" {
			s.sentTo(b, "north", nil)
		} else {
			s.sentTo(b, "north", validation())
		}
		tried[image] = s.sentTo(b, "south", validation())
	}
	s.driver("one", nil)
	waiting := func(id, image, where string) bool {
		rows, _, err := s.store.Rows(ctx, id, []wave.State{wave.Processing}, 10)
		for _, r := range rows {
			if r.Image == image {
				return strings.HasPrefix(r.Note, "waits for uploads to "+where)
			}
		}
		return err != nil
	}
	for _, id := range []string{"sent", "valid"} {
		s.eventually(id+": a is tried in south", func() bool { return waiting(id, "a", "south") })
		s.eventually(id+": b is tried everywhere", func() bool { return waiting(id, "b", "north, south") })
	}
	s.comesTo(tried["b"], zkmodel.ValidationPassed)
	for _, id := range []string{"sent", "valid"} {
		s.eventually(id+": b is validated in one, which is enough", func() bool { return s.in(id, wave.Completed, "b") })
	}
	s.comesTo(tried["a"], zkmodel.ValidationUntried)
	s.later(time.Minute) // all is looked at again
	for _, id := range []string{"sent", "valid"} {
		if !waiting(id, "a", "south") {
			t.Errorf("%s: %v", id, s.states(id))
		}
	}
	s.comesTo(tried["a"], zkmodel.ValidationPassed)
	for _, id := range []string{"sent", "valid"} {
		r := s.result(id)
		if r.State != wave.Completed || r.Jobs[0].Uploads["south"] != tried["a"].Build+"/"+tried["a"].ID {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if u, err := s.models.Upload(ctx, tried["a"].UploadKey); err != nil || !u.OnTrial() {
		t.Errorf("%+v, %v", u, err)
	}
}
