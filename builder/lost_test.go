package builder

import (
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// An image that somebody deleted in the cloud is sent again, once a launcher has
// found out; one that only would not boot stays.
func TestLostImageIsSentAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	s.start(func(d *Deps) { d.LeakAge = 50 * time.Millisecond })
	s.ready("img", 1, "north", "south")
	lost, kept := s.uploads("img", "north", zkmodel.UploadReady)[0], s.uploads("img", "south", zkmodel.UploadReady)[0]
	if err := s.cloud("north").DeleteImage(t.Context(), lost.ExternalID.Text()); err != nil {
		t.Fatal(err)
	}
	for _, u := range []*zkmodel.Upload{lost, kept} {
		lock, now, err := s.store.LockUpload(t.Context(), u.UploadKey)
		if err != nil {
			t.Fatal(err)
		}
		now.Suspect = "suspect: would not boot"
		if err := s.store.SaveUpload(t.Context(), lock, now); err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("it is sent again", func() bool {
		again := s.uploads("img", "north", zkmodel.UploadReady)
		return len(again) == 1 && again[0].ExternalID.Text() != lost.ExternalID.Text() && again[0].Suspect == ""
	})
	if now := s.uploads("img", "south", zkmodel.UploadReady); len(now) != 1 || now[0].ExternalID.Text() != kept.ExternalID.Text() {
		t.Errorf("the image that is there was sent again: %+v", now)
	}
}
