package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// site is a configuration that is complete but for what a test is about.
const site = `
images-dir: /images
zookeeper-servers: [{host: localhost}]
diskimages: [{name: base, abstract: true}, {name: debian}]
labels: [{name: small}]
`

// environment looks variables up in a map, as Options.Env wants it.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		content, ok := vars[name]
		return content, ok
	}
}

// alone is an environment with nothing in it, so that no clouds.yaml of the
// machine changes a test.
func alone() func(string) (string, bool) { return environment(nil) }

// write puts text into a new file and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads a text as a daemon does, and fails the test if that is not
// possible.
func load(t *testing.T, text string) *Config {
	t.Helper()
	config, err := Load(write(t, "nodepool.yaml", text), Options{Env: alone()})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// loadFails reads a text and returns its errors, without the directory.
func loadFails(t *testing.T, text string, strict bool) string {
	t.Helper()
	path := write(t, "nodepool.yaml", text)
	_, err := Load(path, Options{Env: alone(), Strict: strict})
	if err == nil {
		t.Fatalf("Load took\n%s", text)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "")
}

// image finds an image of a configuration.
func image(t *testing.T, c *Config, name string) *DiskImage {
	t.Helper()
	found, ok := c.DiskImage(name)
	if !ok {
		t.Fatalf("no image %q", name)
	}
	return found
}

// provider finds a provider of a configuration.
func provider(t *testing.T, c *Config, name string) *Provider {
	t.Helper()
	found, ok := c.Provider(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	return found
}
