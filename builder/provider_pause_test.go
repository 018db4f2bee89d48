package builder

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/wave"
)

// Nothing is uploaded to a provider that is paused, by neither of two builders; builds and
// the other provider's uploads go on, explain says why, and a wave does not wait for it. When
// the pause ends, by a word or by itself, what is missing is sent. Catches: an upload into a
// cloud that is maintained; a pause whose end nobody notices; a wave that waits for days.
func TestPausedProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("more")
	s.addProvider("south", "qcow2", "img", "more")
	s.addProvider("west", "qcow2", "img", "more")
	op := operate.New(s.store, "anna@desk")
	pause := func(limit time.Duration) {
		t.Helper()
		if _, err := op.PauseProvider(t.Context(), "south", "new switches", limit, false); err != nil {
			t.Fatal(err)
		}
	}
	pause(0)
	s.pausable("one")
	s.config.ImagesDir += "2"
	s.pausable("two")
	images := []string{"img", "more"}
	for _, image := range images {
		s.ready(image, 1, "west")
	}
	store := s.wave("w", 0, wave.UntilUploaded)
	r := s.waveReport(store, "w", time.Minute)
	for _, job := range r.Jobs {
		if why := job.Closed["south"]; r.State != wave.Completed || job.Uploads["west"] == "" || job.Uploads["south"] != "" || !strings.Contains(why, "paused by anna@desk: new switches") {
			t.Errorf("%s: %+v", r.State, job)
		}
	}
	for _, image := range images {
		if there := s.tree(image); slices.ContainsFunc(there.Builds, func(b *zkmodel.BuildTree) bool {
			return slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.Provider == "south" })
		}) {
			t.Errorf("%s was sent to a provider that is paused", image)
		}
	}
	told := false
	for _, e := range s.explain("img") {
		for _, v := range e.Verdicts {
			told = told || v.Subject == "upload to south" && strings.Contains(v.Detail, "paused by anna@desk: new switches (provider-resume ends that)")
		}
	}
	if !told {
		t.Error("explain does not say why nothing is sent")
	}
	pause(time.Second)
	for _, image := range images {
		s.eventually(image+" is sent once the pause is over", func() bool { return len(s.uploads(image, "south", zkmodel.UploadReady)) > 0 })
	}
}
