package plan

import (
	"errors"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestWhatToUpload(t *testing.T) {
	type row = struct {
		set  func(s *scene)
		want string
	}
	failed := func(n int, ago time.Duration) func(*zkmodel.Upload) {
		return func(u *zkmodel.Upload) {
			u.Failures, u.StateTime = n, zkmodel.EpochOf(noon().Add(-ago))
		}
	}
	play(t, map[string]row{
		"everywhere": {func(s *scene) { s.build(zkmodel.BuildReady, hour) }, "upload 1 north qcow2; upload 1 south raw"},
		"nothing ready": {func(s *scene) {
			s.build(zkmodel.BuildBuilding, 0)
			s.Image.BuildsLocked = true
			s.InFlight.Builds = "0000000001"
		}, ""},
		"one is paused": {func(s *scene) {
			s.Config.Providers[0].DiskImages[0].Pause = true
			s.build(zkmodel.BuildReady, hour)
		}, "upload 1 south raw"},
		"the image's pause is for builds": {func(s *scene) {
			s.Image.Paused = true
			s.build(zkmodel.BuildReady, hour)
		}, "upload 1 north qcow2; upload 1 south raw"},
		"only the newest": {func(s *scene) { s.build(zkmodel.BuildReady, 2*hour); s.uploaded(hour) }, ""},
		"files elsewhere": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Builder = "other" })
		}, ""},
		"one format is gone": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour)
			s.Local[0].Formats = []string{"raw"}
		}, "build; upload 1 south raw"},
		"one is under way here": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "north", zkmodel.UploadUploading)
			s.InFlight.Uploads = map[string]bool{UploadKey("img", b.ID, "north"): true}
		}, "upload 1 south raw"},
		"one begins here": {func(s *scene) {
			s.InFlight.Uploads = map[string]bool{UploadKey("img", s.build(zkmodel.BuildReady, hour).ID, "north"): true}
		}, "upload 1 south raw"},
		"its lock is ours": {func(s *scene) {
			key := UploadKey("img", s.build(zkmodel.BuildReady, hour).ID, "north")
			s.InFlight.Uploads, s.InFlight.Sending = map[string]bool{key: true}, key
		}, "upload 1 north qcow2; upload 1 south raw"},
		"one failed just now": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadFailed, failed(1, 0))
		}, "upload 1 south raw"},
		"one failed before": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadFailed, failed(1, time.Minute))
		}, "upload 1 north qcow2; upload 1 south raw"},
		"one failed often": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadFailed, failed(5, time.Minute))
		}, "upload 1 south raw"},
		"one was deleted": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadDeleting)
		}, "delete-upload 1 north 1; upload 1 north qcow2; upload 1 south raw"},
	})
}

func TestWhatGoes(t *testing.T) {
	type row = struct {
		set  func(s *scene)
		want string
	}
	by := func(builder string) func(*zkmodel.Upload) {
		return func(u *zkmodel.Upload) { u.Builder = builder }
	}
	play(t, map[string]row{
		"the newest two stay": {func(s *scene) { s.uploaded(3 * hour); s.uploaded(2 * hour) }, ""},
		"the third goes": {
			func(s *scene) { s.uploaded(3 * hour); s.uploaded(2 * hour); s.uploaded(hour) },
			"delete-upload 1 north 1; delete-upload 1 south 2; mark-build 1",
		},
		"one of the third stays where a newer one is missing": {func(s *scene) {
			s.uploaded(3 * hour)
			s.upload(s.build(zkmodel.BuildReady, 2*hour), "north", zkmodel.UploadReady)
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadReady)
		}, "delete-upload 1 north 1; upload 3 south raw"},
		"the last stays with keep-builds 1 until the next is everywhere": {func(s *scene) {
			s.image().KeepBuilds = 1
			s.uploaded(2 * hour)
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadReady)
		}, "delete-upload 1 north 1; upload 2 south raw"},
		"the last that boots stays": {func(s *scene) {
			s.uploaded(4 * hour)
			for ago := 3; ago > 0; ago-- {
				b := s.uploaded(time.Duration(ago) * hour)
				b.Uploads[0].Suspect = "3 boots in a row failed" // north's
			}
		}, "delete-upload 1 south 2; delete-upload 2 north 1; delete-upload 2 south 2; mark-build 2"},
		"deleting": {
			func(s *scene) { s.uploaded(hour).State = zkmodel.BuildDeleting; s.Image.Paused = true },
			"delete-upload 1 north 1; delete-upload 1 south 2; remove-files 1",
		},
		"deleting, nothing left": {
			func(s *scene) { s.build(zkmodel.BuildDeleting, hour); s.Image.Paused = true },
			"delete-build 1; remove-files 1",
		},
		"stale beside a running one": {func(s *scene) {
			s.build(zkmodel.BuildBuilding, hour, func(b *zkmodel.Build) { b.Builder = "gone" })
			s.build(zkmodel.BuildBuilding, 0, func(b *zkmodel.Build) { b.Builder = "other" })
			s.Image.BuildsLocked = true
		}, "delete-build 1"},
		"stale": {func(s *scene) {
			s.uploaded(hour)
			s.build(zkmodel.BuildBuilding, hour, func(b *zkmodel.Build) { b.Builder = "gone" })
		}, "delete-build 2"},
		"failed uploads tell until there is a later one": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "south", zkmodel.UploadReady)
		}, "delete-upload 1 north 1"},
		"a failed upload tells nothing where an earlier one is ready again": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "north", zkmodel.UploadReady)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "south", zkmodel.UploadReady)
		}, "delete-upload 1 north 2"},
		"a failed upload tells nothing where a newer build serves": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, 2*hour)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "south", zkmodel.UploadReady)
			s.uploaded(hour)
		}, "delete-upload 1 north 1"},
		"a failed upload tells of what may be sent while no newer build serves": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, 2*hour)
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "south", zkmodel.UploadReady)
			s.upload(s.build(zkmodel.BuildReady, hour), "south", zkmodel.UploadReady)
		}, "upload 2 north qcow2"},
		"a failed upload tells of what may be sent also where its build is on trial": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour)
			s.upload(b, "north", zkmodel.UploadUploading, func(u *zkmodel.Upload) { u.ExternalID = zkmodel.TextValue("id") })
			s.upload(b, "north", zkmodel.UploadFailed)
			s.upload(b, "south", zkmodel.UploadReady)
		}, ""},
		"uploads of a builder that is gone": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading, by("gone"))
		}, "reclaim-upload 1 north 1; upload 1 south raw"},
		"uploads of ours that we are not at": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading)
		}, "reclaim-upload 1 north 1; upload 1 south raw"},
		"uploads of a builder that is there": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading, by("other.example.org"))
		}, "upload 1 south raw"},
		"uploads that never end": {func(s *scene) {
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading, by("other.example.org"),
				func(u *zkmodel.Upload) { u.StateTime = zkmodel.EpochOf(noon().Add(-2 * hour)) })
		}, "reclaim-upload 1 north 1; upload 1 south raw"},
		"uploads that never end, by a clock that is wrong": {func(s *scene) {
			s.Host.ClockOff = -2 * time.Minute
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadUploading, by("other.example.org"),
				func(u *zkmodel.Upload) { u.StateTime = zkmodel.EpochOf(noon().Add(-2 * hour)) })
		}, "upload 1 south raw"},
		"uploads to providers that are not ours": {func(s *scene) {
			b := s.uploaded(hour)
			s.upload(b, "theirs", zkmodel.UploadDeleting)
			b.State = zkmodel.BuildDeleting
			s.Image.Paused = true
		}, "delete-upload 1 north 1; delete-upload 1 south 2; remove-files 1"},
		"the image is not configured": {func(s *scene) {
			s.uploaded(hour)
			s.Config.DiskImages = nil
			for i := range s.Config.Providers {
				s.Config.Providers[i].DiskImages = nil
			}
		}, "delete-upload 1 north 1; delete-upload 1 south 2; mark-build 1"},
		"broken records": {func(s *scene) {
			b := s.uploaded(hour)
			s.upload(b, "north", "", func(u *zkmodel.Upload) { u.Broken = errors.New("empty") })
			s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Builder = errors.New("empty"), "" })
		}, "delete-build 2; delete-upload 1 north 3"},
		"unknown records": {func(s *scene) {
			b := s.uploaded(hour)
			s.upload(b, "north", "", func(u *zkmodel.Upload) { u.Broken, u.Stat.Version = errors.New("no JSON"), 1 })
			s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Stat = recipe.ErrUnread, recipe.Stat{} })
			s.upload(s.Image.Builds[len(s.Image.Builds)-1], "south", zkmodel.UploadReady)
		}, ""},
		"an empty record with files": {func(s *scene) {
			s.uploaded(hour)
			b := s.build("", 0, func(b *zkmodel.Build) { b.Broken, b.Builder = errors.New("empty"), "" })
			s.Local = append(s.Local, LocalBuild{ID: b.ID, Formats: []string{"qcow2"}})
		}, ""},
		"part of the image is unread": {func(s *scene) {
			s.Image.Unread = recipe.ErrUnread
			s.uploaded(300 * hour)
			s.build(zkmodel.BuildFailed, 200*hour)
			b := s.uploaded(hour)
			b.State = zkmodel.BuildDeleting
			s.Local = append(s.Local, LocalBuild{ID: "0000000036", Formats: []string{"qcow2"}, Ours: true})
		}, "build"},
		"states of tomorrow": {func(s *scene) {
			s.uploaded(hour)
			s.build("hibernating", 0, func(b *zkmodel.Build) { b.Builder = "other" })
		}, ""},
	})
}

func TestFilesHere(t *testing.T) {
	type row = struct {
		set  func(s *scene)
		want string
	}
	lone := func(ours bool) func(*scene) {
		return func(s *scene) {
			s.uploaded(hour)
			s.Local = append(s.Local, LocalBuild{ID: "0000000036", Formats: []string{"qcow2"}, Ours: ours})
		}
	}
	play(t, map[string]row{
		"ours without a record":     {lone(true), "remove-files 36"},
		"somebody's, by their name": {lone(false), ""},
		"ours, being made": {func(s *scene) {
			lone(true)(s)
			s.InFlight.Builds = "0000000036"
		}, ""},
		"made by the builder before us": {func(s *scene) { s.uploaded(hour); s.Local[0].Ours = false }, "adopt 1"},
		"made by somebody else": {func(s *scene) {
			s.uploaded(hour).BuilderID = "other-id"
			s.Local[0].Ours = false
		}, ""},
		"delete-after-upload": {func(s *scene) {
			s.image().DeleteAfterUpload = true
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadReady)
		}, "remove-format 1 qcow2; upload 1 south raw"},
		"keep-formats": {func(s *scene) {
			s.image().DeleteAfterUpload, s.image().KeepFormats = true, []string{"raw"}
			s.uploaded(hour)
		}, "remove-format 1 qcow2"},
	})
}

// An upload whose creation the cloud did not answer stays until the cloud can no longer create its image.
func TestUnansweredUploadStays(t *testing.T) {
	for state, kind := range map[zkmodel.UploadState]Kind{
		zkmodel.UploadUploading: ReclaimUpload, zkmodel.UploadDeleting: DeleteUpload,
	} {
		s := newScene()
		s.Config.Providers[0].UnansweredCreateTimeout = 5 * time.Minute
		b := s.build(zkmodel.BuildReady, hour)
		s.upload(b, "north", state, func(u *zkmodel.Upload) {
			u.AskedID, u.Asked = "late", zkmodel.EpochOf(s.Now.Add(-4*time.Minute))
		})
		p := Decide(s.Input)
		if got := why(p, kind); got != "" || !p.Next.Equal(s.Now.Add(time.Minute)) {
			t.Errorf("%s, a minute too early: %q, next look at %s", state, got, p.Next)
		}
		s.Now = s.Now.Add(time.Minute)
		if got := why(Decide(s.Input), kind); got == "" {
			t.Errorf("%s, in time: the upload is not removed: %s", state, brief(Decide(s.Input)))
		}
	}
}
