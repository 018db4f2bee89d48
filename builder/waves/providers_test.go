package waves_test

import (
	"os"
	"path/filepath"
	"testing"

	"poolkeeper/builder/waves"
	"poolkeeper/configs"
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
