package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// judge notes a verdict on a build in a provider.
func (s *scene) judge(b *zkmodel.BuildTree, provider string) {
	if s.Image.Verdicts == nil {
		s.Image.Verdicts = &zkmodel.Verdicts{}
	}
	s.Image.Verdicts.List = append(s.Image.Verdicts.List, zkmodel.Verdict{
		Kind: zkmodel.RolledBack, Provider: provider, Build: b.ID, BuildCzxid: b.Stat.Czxid, By: "ann",
	})
}

// pin pins a build in a provider.
func (s *scene) pin(b *zkmodel.BuildTree, provider string) {
	if s.Image.Verdicts == nil {
		s.Image.Verdicts = &zkmodel.Verdicts{}
	}
	s.Image.Verdicts.Pins = append(s.Image.Verdicts.Pins, zkmodel.Pin{Provider: provider, Build: b.ID, BuildCzxid: b.Stat.Czxid, By: "ann"})
}

// Mistakes: a build that was rolled back is sent again, or built again as it is missing;
// what was said at one provider holds at another; what was said of a build counts for
// another one of the same number; a pinned build is cleaned, or another build or provider
// keeps what it should not; the last good upload goes because bad ones are newer.
func TestVerdicts(t *testing.T) {
	play(t, map[string]struct {
		set  func(s *scene)
		want string
	}{
		"rolled back and deleted there": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.judge(b, "north")
		}, ""},
		"rolled back, to be deleted, and ready again": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.uploaded(time.Hour)
			s.judge(b, "north")
			s.Image.Verdicts.List[0].Delete = true
		}, "delete-upload 2 north 1"},
		"both rolled back, and the newer one is to be deleted": {func(s *scene) {
			s.image().KeepBuilds = 1
			s.judge(s.uploaded(3*time.Hour), "north")
			s.judge(s.uploaded(time.Hour), "north")
			s.Image.Verdicts.List[1].Delete = true
		}, "delete-upload 1 south 2; delete-upload 2 north 1"},
		"failed, and the newer one was rolled back": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, 3*time.Hour), "north", zkmodel.UploadFailed)
			b := s.uploaded(time.Hour)
			s.judge(b, "north")
		}, ""},
		"failed, and the newer one cannot be read": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, 3*time.Hour), "north", zkmodel.UploadFailed)
			s.uploaded(time.Hour).Broken = errors.New("spoilt")
		}, "upload 1 south raw"},
		"failed and pinned": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, 3*time.Hour)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.uploaded(time.Hour)
			s.pin(b, "north")
		}, ""},
		"another build of that number": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.judge(b, "north")
			s.Image.Verdicts.List[0].BuildCzxid++
		}, "upload 2 north qcow2"}, // the verdict is stale: people decide
		"said of another provider": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.judge(b, "south")
		}, "upload 2 north qcow2"},
		"the one before was never there": {func(s *scene) {
			s.build(zkmodel.BuildReady, 3*time.Hour)
			b := s.uploaded(time.Hour)
			s.judge(b, "north")
		}, "upload 1 north qcow2"},
		"its file is lost, and nobody waits for it": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.Local[1].Formats = nil
			s.judge(b, "north")
			s.judge(b, "south")
		}, ""},
		"the last good one stays": {func(s *scene) {
			s.uploaded(5 * time.Hour)
			for _, ago := range []time.Duration{4, 3, 2} {
				s.judge(s.uploaded(ago*time.Hour), "north")
			}
		}, "delete-upload 1 south 2; delete-upload 2 north 1; delete-upload 2 south 2; mark-build 2"},
		"pinned": {func(s *scene) {
			s.pin(s.uploaded(6*time.Hour), "north")
			s.uploaded(5 * time.Hour)
			s.uploaded(4 * time.Hour)
			s.uploaded(3 * time.Hour)
		}, "delete-upload 2 north 1; delete-upload 2 south 2; mark-build 2"},
		"what serves until a canary is proven, and the canary": {func(s *scene) {
			old, bad := s.uploaded(7*time.Hour), s.uploaded(6*time.Hour)
			s.uploaded(5 * time.Hour)
			s.uploaded(4 * time.Hour)
			c := zkmodel.NewCanary("north", s.Image.Name, old.Build)
			s.Image.Canaries = []*zkmodel.Canary{c.Begin(bad.Uploads[0], bad.Build, 1)}
		}, ""},
		"what waited for a canary that is over": {func(s *scene) {
			s.uploaded(7 * time.Hour)
			s.uploaded(6 * time.Hour)
			s.uploaded(5 * time.Hour)
			s.Image.Canaries = []*zkmodel.Canary{zkmodel.NewCanary("north", s.Image.Name, s.uploaded(4*time.Hour).Build)}
		}, "delete-upload 1 north 1; delete-upload 1 south 2; delete-upload 2 north 1; delete-upload 2 south 2; mark-build 1; mark-build 2"},
		"pinned where nobody has it": {func(s *scene) {
			s.pin(s.uploaded(6*time.Hour), "elsewhere")
			s.uploaded(5 * time.Hour)
			s.uploaded(4 * time.Hour)
		}, "delete-upload 1 north 1; delete-upload 1 south 2; mark-build 1"},
		"pinned, and lost by the cloud": {func(s *scene) {
			s.pin(s.build(zkmodel.BuildReady, 6*time.Hour), "north")
			s.uploaded(5 * time.Hour)
		}, "upload 1 north qcow2"},
		"pinned, lost, and the next in line": {func(s *scene) {
			s.pin(s.build(zkmodel.BuildReady, 6*time.Hour), "north")
			s.judge(s.uploaded(5*time.Hour), "north")
		}, "upload 1 north qcow2"},
		"gone": {func(s *scene) {
			s.uploaded(2 * time.Hour)
			s.uploaded(time.Hour)
			gone := s.build(zkmodel.BuildReady, 0)
			s.judge(gone, "north")
			s.pin(gone, "north")
			s.Image.Builds, s.Local = s.Image.Builds[:2], s.Local[:2]
		}, "forget-verdicts"},
		"pinned and gone": {func(s *scene) {
			s.uploaded(2 * time.Hour)
			s.uploaded(time.Hour)
			s.pin(s.build(zkmodel.BuildReady, 0), "north")
			s.Image.Builds, s.Local = s.Image.Builds[:2], s.Local[:2]
		}, "forget-verdicts"},
		"pinned and being deleted": {func(s *scene) {
			s.uploaded(2 * time.Hour)
			b := s.uploaded(time.Hour)
			s.pin(b, "north")
			b.State = zkmodel.BuildDeleting
		}, "delete-upload 2 north 1; delete-upload 2 south 2; forget-verdicts; remove-files 2"},
		"not configured": {func(s *scene) {
			s.pin(s.build(zkmodel.BuildReady, 0), "north")
			s.Image.Builds, s.Local, s.Config.DiskImages = nil, nil, nil
		}, "forget-verdicts"},
		"left out with its builds, of which one is gone": {func(s *scene) {
			kept := s.uploaded(2 * time.Hour)
			gone := s.build(zkmodel.BuildReady, 0)
			s.pin(kept, "north")
			s.pin(gone, "south")
			s.Image.Builds, s.Local, s.Config.DiskImages = s.Image.Builds[:1], s.Local[:1], nil
		}, "delete-upload 1 north 1; delete-upload 1 south 2; forget-verdicts; mark-build 1"},
		"delete-after-upload waits for nobody who does not get it": {func(s *scene) {
			s.uploaded(3 * time.Hour)
			b := s.build(zkmodel.BuildReady, time.Hour)
			s.upload(b, "south", zkmodel.UploadReady)
			s.judge(b, "north")
			s.image().DeleteAfterUpload = true
		}, "remove-format 1 qcow2; remove-format 1 raw; remove-format 2 qcow2; remove-format 2 raw"},
	})
}

// Mistake: nobody can see why a build is not sent, or why newer ones do not serve.
func TestVerdictsAreExplained(t *testing.T) {
	s := newScene()
	older := s.uploaded(3 * time.Hour)
	b := s.build(zkmodel.BuildReady, time.Hour)
	s.upload(b, "south", zkmodel.UploadReady)
	s.judge(b, "north")
	s.pin(older, "north")
	_, verdicts := Explain(s.Input)
	var all []string
	for _, v := range verdicts {
		all = append(all, v.Subject+" "+v.Rule+" "+v.Speaks+" "+v.Detail)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{
		"upload to north verdict no build 0000000002 was rolled back by ann; it is not sent there again, and the next comes by schedule or request",
		"build 0000000001 keep yes it is pinned by ann, at north",
		"pin at north serves yes build 0000000001 is pinned by ann; newer ones wait until it is released (image-rollback img --release)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not explained: %s\n%s", want, text)
		}
	}
}
