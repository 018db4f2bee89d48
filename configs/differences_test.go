package configs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	before := load(t, site+`
providers:
  - name: north
    cloud: x
    diskimages: [{name: debian}]
    pools: [{name: main, max-servers: 10, max-cores: 4, labels: [{name: small, min-ram: 1, diskimage: debian}]}]
  - {name: south, cloud: y}
`)
	if got := Differences(before, before); len(got) > 0 {
		t.Errorf("a configuration differs from itself: %q", got)
	}
	after := load(t, strings.Replace(site, "{name: debian}", "{name: debian, env-vars: {KEY: a secret}}, {name: fedora}", 1)+`
providers:
  - name: north
    cloud: x
    diskimages: [{name: debian}, {name: fedora}]
    pools: [{name: main, max-severs: 10, max-cores: 2, labels: [{name: small, min-ram: x, diskimage: debian}]}]
`)
	want := []string{
		"image debian is changed", "image fedora is added", "provider north is changed",
		"provider north: image fedora is added", "provider north: pool main is changed",
		"provider north: pool main: max-servers is no limit, was 10", "provider north: pool main: max-cores is 2, was 4",
		"provider north: pool main: label small is changed", "provider south is removed",
	}
	got := Differences(before, after)
	if len(got) != len(want)+1 || !strings.HasPrefix(got[len(got)-1], "left out: pool label small of pool main") {
		t.Fatalf("got %q", got)
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// What is referred to and not defined may be lost with a part of the file: it does
// not count as given up.
func TestWhatIsReferredToIsNotGone(t *testing.T) {
	c := load(t, `
zookeeper-servers: [{host: localhost}]
providers:
  - name: north
    cloud: x
    diskimages: [{name: debian}]
    pools: [{name: main, labels: [{name: small, min-ram: 1, diskimage: debian}]}]
`)
	if c.FrozenImage("debian") == "" || c.FrozenStock("small") == "" || c.FrozenUpload("north", "debian") == "" ||
		c.FrozenLabel("north", "main", "small") == "" || c.FrozenImage("other") != "" || c.FrozenPool("north", "main") != "" {
		t.Errorf("left out: %v", c.Frozen)
	}
}
