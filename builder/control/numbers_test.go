package control

import (
	"os"
	"path/filepath"
	"testing"

	"poolkeeper/builder/disk"
	"poolkeeper/zkmodel"
)

// The highest number of an image's builds is noted, which need not be the youngest build's, and is
// written once. Mistakes: only the youngest's; a write with each look.
func TestHighestNumberIsNoted(t *testing.T) {
	l, _, _ := newTestLoop(nil)
	dir := t.TempDir()
	images, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = images.Close() }()
	l.images = images
	image := &zkmodel.Image{Name: "img"}
	for _, id := range []string{"0000000003", "2000000000000", "0000000007", "by-hand", "0000000002"} {
		image.Builds = append(image.Builds, &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "img", ID: id}})
	}
	file := filepath.Join(dir, ".poolkeeper", "numbers.json")
	var before os.FileInfo
	for range 2 {
		l.note(builds(nil, image))
		if got, err := images.Newest("img"); err != nil || got != "0000000007" {
			t.Errorf("noted is %q, %v", got, err)
		}
		now, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !os.SameFile(before, now) {
			t.Error("it was written again")
		}
		before = now
	}
}
