package pages

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers/openstack/clouds"
)

// site is what the page leaves to the reader.
const site = `zookeeper-servers: [{host: 127.0.0.1}]
images-dir: /images
diskimages: [{name: debian-bookworm}]
labels: [{name: debian-bookworm}]
`

// The configurations that docs/openstack.md shows load without a warning: the cloud, also with hints about networks,
// the provider, and each of the ways to import.
func TestOpenStackPage(t *testing.T) {
	var shown []string
	for _, b := range allBlocks(t) {
		if b.Page == "docs/openstack.md" && b.Lang == "yaml" {
			shown = append(shown, b.Text)
		}
	}
	if len(shown) != 4 {
		t.Fatalf("docs/openstack.md shows %d configurations, want the cloud, the provider, the networks and the imports", len(shown))
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	_, hints, _ := strings.Cut(shown[2], "  example:\n")
	t.Setenv("OS_CLIENT_CONFIG_FILE", write("clouds.yaml", shown[0]+hints))
	cloud, err := clouds.Read("example", "north", os.LookupEnv, nil)
	if err != nil || len(cloud.Networks) != 3 || !cloud.Networks[0].DefaultInterface {
		t.Errorf("networks of the cloud: %+v, %v", cloud.Networks, err)
	}
	ways := append([]string{""}, strings.Split(shown[3], "    # or\n")...)
	if len(ways) != 3 {
		t.Fatalf("ways to import: %q", ways)
	}
	for _, way := range ways {
		file := write("nodepool.yaml", site+strings.Replace(shown[1], "    diskimages:\n", way+"    diskimages:\n", 1))
		cfg, err := configs.Load(file, configs.Options{Strict: true})
		if err == nil && len(cfg.Warnings) > 0 {
			err = errors.New(strings.Join(cfg.Warnings, "\n"))
		}
		if err != nil {
			t.Errorf("with %q: %v", way, err)
		}
	}
}
