package node

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// uploads are a tree with image debian of some builds, each with one ready upload to
// provider p, and the marks that were asked for.
type uploads struct {
	image *zkmodel.Image
	marks map[string]string // why, by build; "" is cleared
}

func uploadsOf(builds int) *uploads {
	u := &uploads{image: &zkmodel.Image{Name: "debian"}, marks: map[string]string{}}
	for i := range builds {
		id := fmt.Sprintf("%010d", i)
		b := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "debian", ID: id, State: zkmodel.BuildReady}}
		b.Uploads = append(b.Uploads, &zkmodel.Upload{
			UploadKey: zkmodel.UploadKey{Image: "debian", Build: id, Provider: "p", ID: "0000000001"},
			State:     zkmodel.UploadReady, ExternalID: zkmodel.TextValue("ext-" + id),
		})
		u.image.Builds = append(u.image.Builds, b)
	}
	return u
}

func (u *uploads) upload(build int) *zkmodel.Upload       { return u.image.Builds[build].Uploads[0] }
func (u *uploads) Image(string) *zkmodel.Image            { return u.image }
func (u *uploads) Mark(key zkmodel.UploadKey, why string) { u.marks[key.Build] = why }
func (u *uploads) Clear(key zkmodel.UploadKey)            { u.marks[key.Build] = "" }
func (u *uploads) is(t *testing.T, want map[string]string) {
	t.Helper()
	if !maps.Equal(u.marks, want) {
		t.Errorf("marked %q, want %q", u.marks, want)
	}
}

// An image that fails to boot is passed over by its older build, and marked once that
// boots: marked before, an image would be suspect for what its cloud does.
func TestImageThatDoesNotBootIsDoubted(t *testing.T) {
	u := uploadsOf(2)
	trust := Trust{NewBoots(), u}
	newer, older := u.upload(1), u.upload(0)
	for range suspectAfter {
		if got := trust.Choose("debian", "p"); got != newer || trust.Other(newer.Path(), "p") {
			t.Fatalf("chose %s", got.Path())
		}
		trust.Boots.Note(newer.Path(), errors.New("somebody took the machine")) // says nothing of the image
		trust.Boots.Note(newer.Path(), providers.ErrNodeFailed)
	}
	if got := trust.Choose("debian", "p"); got != older || !trust.Other(newer.Path(), "p") {
		t.Errorf("chose %s after %d failures", got.Path(), suspectAfter)
	}
	u.is(t, map[string]string{})
	trust.Booted(older.Path())
	u.is(t, map[string]string{newer.Build: "suspect: failed to boot 3 times in a row, while build 0000000000 boots"})
}

// What is suspect and boots is so no more, and nothing is written into what never was.
func TestImageThatBootsIsCleared(t *testing.T) {
	u := uploadsOf(3)
	trust := Trust{NewBoots(), u}
	trust.Booted(u.upload(2).Path())
	u.is(t, map[string]string{})
	u.upload(2).Suspect, u.upload(1).Suspect = "it was", "it is"
	trust.Booted(u.upload(2).Path())
	u.is(t, map[string]string{u.upload(2).Build: ""})
}

// What the cloud does not have is not tried again, also when nothing else is there to
// boot from; a cloud image has no record to be marked.
func TestMissingImageIsMarkedAtOnce(t *testing.T) {
	u := uploadsOf(2)
	trust := Trust{NewBoots(), u}
	trust.Missing("cloud-image")
	trust.Missing(u.upload(1).Path())
	u.is(t, map[string]string{u.upload(1).Build: "suspect: the cloud says that it does not have it"})
	if got := trust.Choose("debian", "p"); got != u.upload(0) {
		t.Errorf("chose %s", got.Path())
	}
	trust.Missing(u.upload(0).Path())
	if got := trust.Choose("debian", "p"); got != u.upload(1) {
		t.Errorf("of two that are doubted the newest is %s", got.Path())
	}
}
