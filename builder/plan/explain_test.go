package plan

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// told is what people are told of a scene, and what follows. Times are of any zone: they are shown in UTC.
func told(s *scene, first bool) string {
	p, verdicts := Explain(s.Input)
	var text strings.Builder
	for _, v := range verdicts {
		if open := v.Detail == "not in the way"; !open || first {
			fmt.Fprintf(&text, "  %s: %s: %s: %s\n", v.Subject, v.Rule, v.Speaks, v.Detail)
		}
	}
	fmt.Fprintf(&text, "  does: %s\n", brief(p))
	if !p.Next.IsZero() {
		fmt.Fprintf(&text, "  looks again: %s\n", clock(p.Next))
	}
	return regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllStringFunc(text.String(), func(at string) string {
		local, _ := time.ParseInLocation(time.DateTime, at, time.Local)
		return local.UTC().Format(time.DateTime)
	})
}

// Mistakes: people are not told why something is done, or is not; or of another rule than the one that decides. What they are told of
// each rule stands in testdata/explained.txt (UPDATE_GOLDEN=1 writes it).
func TestEachRuleIsTold(t *testing.T) {
	gone := func(b *zkmodel.Build) { b.Builder, b.BuilderID = "gone.example.org", "gone-id" }
	scenes := map[string]func(*scene){
		"all is there":           func(s *scene) { s.uploaded(hour) },
		"a build is asked for":   func(s *scene) { s.uploaded(hour); s.request() },
		"the request was served": func(s *scene) { s.request(); s.uploaded(hour) },
		"the image is left out": func(s *scene) {
			s.uploaded(hour)
			s.Config.Freeze(configs.Frozen{Kind: "image", Name: "img", Why: "line 3"})
		},
		"another builder has it": func(s *scene) { s.Config.DiskImages = nil; s.request(); s.Config.Providers = nil },
		"only a driver that we lack lists it": func(s *scene) {
			s.Config.Foreign = []configs.ForeignProvider{{Name: "aws", Driver: "aws", Images: []string{"img"}}, {Name: "gce", Driver: "gce", Images: []string{"other"}}}
			s.Config.Providers = nil
		},
		"paused":           func(s *scene) { s.Image.Paused = true },
		"part is unread":   func(s *scene) { s.Image.Unread = recipe.ErrUnread },
		"nothing is there": func(s *scene) {},
		"a format is missing": func(s *scene) {
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Formats = zkmodel.Formats{"qcow2"} })
		},
		"its files are gone from here":     func(s *scene) { s.build(zkmodel.BuildReady, hour); s.Local[0].Formats = nil },
		"its builder is gone":              func(s *scene) { s.Others.Since = s.Now.Add(-hour); s.build(zkmodel.BuildReady, hour, gone) },
		"its builder has just left":        func(s *scene) { s.build(zkmodel.BuildReady, hour, gone) },
		"its files are on another builder": func(s *scene) { s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Builder = "other" }) },
		"it is old":                        func(s *scene) { s.uploaded(30 * hour) },
		"its schedule is due": func(s *scene) {
			s.image().RebuildAge = 0
			s.image().RebuildSchedule = "0 * * * *"
			s.uploaded(5 * hour)
		},
		"its schedule is wrong":             func(s *scene) { s.image().RebuildAge = 0; s.image().RebuildSchedule = "x"; s.uploaded(5 * hour) },
		"nothing asks for a build":          func(s *scene) { s.image().RebuildAge = 0; s.uploaded(hour) },
		"the last build failed":             func(s *scene) { s.build(zkmodel.BuildFailed, 0) },
		"no window is open":                 func(s *scene) { s.image().BuildWindows = window(t, "22:00-06:00") },
		"there is room":                     func(s *scene) { s.Host.Free = 5 << 30 },
		"there is no room":                  func(s *scene) { s.Host.Free = 5 },
		"it was rolled back":                func(s *scene) { s.judge(s.uploaded(hour), "north") },
		"there are newer ones":              func(s *scene) { s.uploaded(3 * hour); s.uploaded(2 * hour); s.uploaded(hour) },
		"an upload at a provider of others": func(s *scene) { s.upload(s.uploaded(hour), "west", zkmodel.UploadReady) },
		"a provider is left out": func(s *scene) {
			s.uploaded(hour)
			s.Config.Providers = s.Config.Providers[1:]
			s.Config.Freeze(configs.Frozen{Kind: "provider", Name: "north", Why: "line 4"})
		},
		"a provider is skipped": func(s *scene) {
			s.uploaded(hour)
			s.Config.Providers = s.Config.Providers[1:]
			s.Config.Skipped = []configs.SkippedProvider{{Name: "north"}}
		},
		"a provider's image is left out": func(s *scene) {
			s.uploaded(hour)
			s.Config.Freeze(configs.Frozen{Kind: "provider image", Provider: "north", Name: "img", Why: "line 5"})
		},
		"an upload's record cannot be read": func(s *scene) {
			s.upload(s.uploaded(hour), "north", "", func(u *zkmodel.Upload) { u.Broken, u.Stat.Version = errors.New("no JSON"), 1 })
		},
		"an upload is under way": func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "north", zkmodel.UploadUploading)
			s.InFlight.Uploads = map[string]bool{UploadKey("img", b.ID, "north"): true}
		},
		"an upload begins here": func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.InFlight.Uploads = map[string]bool{UploadKey("img", b.ID, "north"): true}
		},
		"our clock is wrong": func(s *scene) {
			s.Host.ClockOff = -2 * time.Minute
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) { u.Builder, u.StateTime = "other", zkmodel.EpochOf(noon().Add(-2*hour)) })
		},
		"our clock is wrong, and nothing goes by age": func(s *scene) {
			s.Host.ClockOff, s.Config.Providers[0].ImageUploadTimeout = -2*time.Minute, 0
			s.upload(s.uploaded(hour), "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) {
				u.Builder, u.StateTime = "other", zkmodel.EpochOf(noon().Add(-2*hour))
			})
		},
		"an upload keeps its build": func(s *scene) {
			b := s.uploaded(hour)
			s.upload(b, "west", zkmodel.UploadReady)
			b.State = zkmodel.BuildDeleting
		},
		"files of others": func(s *scene) {
			s.uploaded(hour).BuilderID = "other-id"
			s.Local[0].Ours = false
			s.Local = append(s.Local, LocalBuild{ID: "0000000036", Formats: []string{"qcow2"}}, LocalBuild{ID: "0000000037", Formats: []string{"qcow2"}, Ours: true})
		},
		"keep-formats": func(s *scene) {
			s.image().DeleteAfterUpload, s.image().KeepFormats = true, []string{"raw"}
			s.uploaded(hour)
		},
		"delete-after-upload": func(s *scene) {
			s.image().DeleteAfterUpload = true
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadReady)
		},
		"providers are paused": func(s *scene) {
			s.build(zkmodel.BuildReady, hour)
			s.Config.Providers[0].DiskImages[0].Pause = true
			s.Paused = map[string]*zkmodel.ProviderPause{"south": {Pause: zkmodel.Pause{Until: zkmodel.EpochOf(noon().Add(hour))}}}
		},
		"an upload failed":              func(s *scene) { s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadFailed) },
		"this builder is about to stop": func(s *scene) { s.build(zkmodel.BuildReady, hour); s.InFlight.Ends = true },
		"an upload is tried":            func(s *scene) { s.image().Validate = &configs.Validate{}; waitingUpload(s, &zkmodel.Validation{}) },
		"nobody tries an upload": func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{})
			s.Untriable = map[string]bool{"north": true}
		},
		"an upload has passed": func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{Result: &zkmodel.ValidationResult{State: zkmodel.ValidationPassed}})
		},
		"an upload has failed": func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{Result: &zkmodel.ValidationResult{State: zkmodel.ValidationFailed}})
		},
		"an upload has waited for a canary": func(s *scene) { waitingUpload(s, zkmodel.WaitingValidation("it waits")) },
		"the record of a trial is lost": func(s *scene) {
			s.image().Validate = &configs.Validate{}
			waitingUpload(s, &zkmodel.Validation{})
			s.Validations = nil
		},
		"what is pinned is gone": func(s *scene) {
			s.uploaded(hour)
			s.pin(s.build(zkmodel.BuildReady, 0), "north")
			s.Image.Builds, s.Local = s.Image.Builds[:1], s.Local[:1]
		},
		"a canary": func(s *scene) {
			s.image().Canary = &configs.Canary{Share: 5}
			old, c := s.uploaded(3*hour), s.uploaded(2*hour)
			s.Image.Canaries = []*zkmodel.Canary{zkmodel.NewCanary("north", "img", old.Build).Begin(c.Uploads[0], c.Build, 1)}
		},
	}
	var text strings.Builder
	for i, name := range slices.Sorted(maps.Keys(scenes)) {
		fmt.Fprintf(&text, "%s\n%s", name, told(newScene(scenes[name]), i == 0))
	}
	const golden = "testdata/explained.txt"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
