package configs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is written about trials is handed on by parents, as a whole, and a child may write
// it anew. Mistakes: a child that shares its parent's record and changes it; a default
// that is no check at all; a label that no pool has, without a word.
func TestValidationsAreReadAndHandedOn(t *testing.T) {
	path := write(t, "nodepool.yaml", `zookeeper-servers: [{host: localhost}]
images-dir: /tmp/images
labels: [{name: small}, {name: large}]
diskimages:
  - {name: base, abstract: true, validate: {checks: [ssh, {command: uptime}], key: /etc/key, timeout: 60}}
  - {name: heir, parent: base}
  - {name: own, parent: base, validate: {providers: any, on-timeout: serve, resources: {label: large}}}
  - {name: none, elements: [vm]}
providers:
  - name: cloud
    driver: fake
    pools: [{name: main, labels: [{name: small, diskimage: heir, min-ram: 512}]}]
`)
	config, err := Load(path, Options{Env: alone()})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*Validate{
		"heir": {Timeout: time.Minute, Key: "/etc/key", Checks: []ValidateCheck{{SSH: true}, {Command: "uptime"}}},
		"own":  {Timeout: 10 * time.Minute, Checks: []ValidateCheck{{SSH: true}}, Any: true, Serve: true, Label: "large"},
		"none": nil,
	}
	for name, validate := range want {
		image, ok := config.DiskImage(name)
		if diff := cmp.Diff(validate, image.Validate); !ok || diff != "" {
			t.Errorf("image %s:\n%s", name, diff)
		}
	}
	if !config.Validates() {
		t.Error("nothing is tried")
	}
	if all := strings.Join(config.Warnings, "\n"); !strings.Contains(all, `no pool has the label "large"`) {
		t.Errorf("the warnings are\n%s", all)
	}
}
