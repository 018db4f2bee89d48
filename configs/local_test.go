package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the driver's page shows is what the loader takes.
func TestLocalPage(t *testing.T) {
	page, err := os.ReadFile("../docs/local.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page shows no configuration")
	}
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	text := "zookeeper-servers: [{host: localhost}]\nlabels: [{name: small}]\n" + block +
		"    diskimages: [{name: tiny}]\n    pools: [{name: main, labels: [{name: small, diskimage: tiny}]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Load(file, Options{Env: alone(), Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := config.Provider("here"); !SettingsOf[LocalDriver](p).Snapshots {
		t.Errorf("settings %+v", p.Settings)
	}
}
