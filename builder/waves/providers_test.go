package waves_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: a wave waits without end for a provider that does not list the image any more,
// or passes over one that another builder's configuration has.
func TestClosedBy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	err := os.WriteFile(file, []byte(`
zookeeper-servers: [{host: 127.0.0.1}]
images-dir: /images
diskimages: [{name: a, elements: [x]}, {name: b, elements: [x]}]
labels: []
providers:
  - {name: north, driver: fake, diskimages: [{name: a}], pools: []}
  - {name: south, driver: fake, diskimages: [{name: a, pause: true}, {name: b}], pools: []}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		provider, image string
		closed          bool
	}{
		{"north", "a", false},
		{"north", "b", true},
		{"south", "a", true},
		{"south", "b", false},
		{"north", "of another builder", false},
		{"of another builder", "a", false},
	} {
		if why := waves.ClosedBy(cfg, tc.provider, tc.image); (why != "") != tc.closed {
			t.Errorf("%s at %s: %q", tc.image, tc.provider, why)
		}
	}
}

// Mistakes: a wave that waits for a validation that never happens; images without one that
// keep those from being built that have one.
func TestWavesUntilValidated(t *testing.T) {
	cfg := &configs.Config{Path: "nodepool.yaml", DiskImages: []configs.DiskImage{
		{Name: "proven", Formats: []string{"raw"}, Validate: &configs.Validate{}}, {Name: "plain", Formats: []string{"raw"}},
	}}
	none := func(string) int64 { return 0 }
	if jobs, err := waves.Jobs(cfg, waves.Wish{Match: []string{"prov*"}, Until: wave.UntilValidated}, none); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %v: %v", jobs, err)
	}
	if jobs, err := waves.Jobs(cfg, waves.Wish{All: true, Until: wave.UntilValidated}, none); !errors.Is(err, waves.ErrNeverValidated) || !strings.Contains(err.Error(), "plain") {
		t.Errorf("jobs %v: %v", jobs, err)
	}
	if jobs, err := waves.Jobs(cfg, waves.Wish{All: true, Until: wave.UntilUploaded}, none); err != nil || len(jobs) != 2 {
		t.Errorf("jobs %v: %v", jobs, err)
	}
}
