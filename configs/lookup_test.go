package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const offers = `
zookeeper-servers: [{host: localhost}]
diskimages:
  - {name: debian, formats: [vhd, raw]}
  - {name: unused}
  - {name: plain}
labels: [{name: small, min-ready: 3}, {name: large}]
tenant-resource-limits: [{tenant-name: one, max-servers: 3, max-ram: 5, gpus: 1}]
providers:
  - name: north
    cloud: example
    diskimages: [{name: debian}, {name: plain}]
    cloud-images: [{name: "Fake Precise"}]
    pools:
      - name: main
        networks: [ci]
        labels:
          - {name: small, min-ram: 1, diskimage: debian}
          - {name: large, min-ram: 1, cloud-image: Fake Precise, networks: []}
  - name: south
    cloud: other
    image-format: raw
    diskimages: [{name: plain}]
    pools: [{name: main, labels: [{name: small, min-ram: 1, diskimage: plain}]}]
  - {name: here, driver: local, diskimages: [{name: debian}]}
  - name: racks
    driver: static
    pools: [{name: main, nodes: [{name: metal, labels: large small}]}]
`

func TestLookups(t *testing.T) {
	c := load(t, offers)
	var names []string
	for _, p := range c.ProvidersOf("plain") {
		names = append(names, p.Name)
	}
	for _, offer := range c.PoolsOf("large") {
		names = append(names, offer.Provider.Name+"/"+offer.Pool.Name)
		if (offer.Label == nil) != (offer.Provider.Driver == DriverStatic) {
			t.Errorf("%s offers %v", offer.Provider.Name, offer.Label)
		}
	}
	if want := []string{"north", "south", "north/main", "racks/main"}; !cmp.Equal(want, names) {
		t.Errorf("found %v, want %v", names, want)
	}
	north := provider(t, c, "north")
	pool, ok := north.Pool("main")
	if !ok || !cmp.Equal(pool.Labels[0].Networks, []string{"ci"}) || len(pool.Labels[1].Networks) != 0 {
		t.Errorf("labels %v, want the pool's networks unless they have their own", pool.Labels)
	}
	if image, ok := north.CloudImage("Fake Precise"); !ok || image.ImageName != "Fake Precise" {
		t.Errorf("cloud image %v, %t", image, ok)
	}
	if label, ok := c.Label("small"); !ok || label.MinReady != 3 {
		t.Errorf("label %v, %t", label, ok)
	}
	limit, ok := c.TenantLimit("one")
	if want := map[string]int{"instances": 3, "ram": 5, "gpus": 1}; !ok || !cmp.Equal(want, limit.Limits) {
		t.Errorf("tenant limit %v, want %v", limit, want)
	}
	for _, found := range []bool{
		present2(c.DiskImage("base")), present2(c.Provider("")), present2(c.Label("x")), present2(c.TenantLimit("two")),
		present2(north.Pool("x")), present2(north.Image("x")), present2(north.CloudImage("x")),
	} {
		if found {
			t.Error("something was found that is not there")
		}
	}
}

func present2[T any](_ T, ok bool) bool { return ok }

func TestImageFormatOfCloud(t *testing.T) {
	home := t.TempDir()
	openstack := filepath.Join(home, ".config", "openstack")
	if err := os.MkdirAll(openstack, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put(filepath.Join(openstack, "clouds-public.yaml"), "public-clouds: {ours: {image_format: vmdk}}")
	inHome := "clouds: {example: {image_format: vhdx, auth: {password: x}}, other: {image_format: vhd}}"
	tests := []struct {
		name, inHome, named string
		want                string // the format of north
	}{
		{"no file", "", "", "qcow2"},
		{"home", inHome, "", "vhdx"},
		{"named file wins", inHome, "clouds: {example: {image_format: raw}}", "raw"},
		{"cloud not in file", "clouds: {}", "", "qcow2"},
		{"vendor profile", "clouds: {example: {profile: rackspace}}", "", "vhd"},
		{"own profile", "clouds: {example: {profile: ours}}", "", "vmdk"},
		{"unknown profile", "clouds: {example: {profile: x}}", "", "qcow2"},
		{"broken file", "clouds: [", "", "qcow2"},
	}
	path := write(t, "nodepool.yaml", offers)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clouds := filepath.Join(openstack, "clouds.yaml")
			defer func() { _ = os.Remove(clouds) }()
			env := map[string]string{"HOME": home}
			if test.inHome != "" {
				put(clouds, test.inHome)
			}
			if test.named != "" {
				env["OS_CLIENT_CONFIG_FILE"] = put(filepath.Join(t.TempDir(), "c.yaml"), test.named)
			}
			c, err := Load(path, Options{Env: environment(env)})
			if err != nil {
				t.Fatal(err)
			}
			if got := provider(t, c, "north").ImageFormat; got != test.want {
				t.Errorf("format %s, want %s", got, test.want)
			}
			if got := provider(t, c, "south").ImageFormat; got != "raw" {
				t.Errorf("the configured format became %s", got)
			}
		})
	}
}

func TestImageFormats(t *testing.T) {
	c := load(t, offers)
	for name, want := range map[string][]string{
		"debian": {"qcow2", "raw", "vhd"}, "plain": {"qcow2", "raw"}, "unused": nil, "nobody": nil,
	} {
		if got := c.ImageFormats(name); !cmp.Equal(want, got) {
			t.Errorf("formats of %s are %v, want %v", name, got, want)
		}
	}
}

func TestBadImageFormatOfCloud(t *testing.T) {
	clouds := write(t, "clouds.yaml", "clouds: {example: {image_format: ../x}}")
	_, err := Load(write(t, "nodepool.yaml", offers),
		Options{Env: environment(map[string]string{"OS_CLIENT_CONFIG_FILE": clouds})})
	if err == nil {
		t.Error("Load took a format that is a path")
	}
}

func TestUnknownCloud(t *testing.T) {
	clouds := write(t, "clouds.yaml", "clouds: {exampel: {auth: {password: hunter2}}, other: {}}")
	c, err := Load(write(t, "nodepool.yaml", offers),
		Options{Env: environment(map[string]string{"OS_CLIENT_CONFIG_FILE": clouds})})
	if err != nil {
		t.Fatal(err)
	}
	var said string
	for _, warning := range c.Warnings {
		said += warning + "\n"
	}
	for _, word := range []string{"providers[north].cloud", `has no cloud "example", it has exampel, other`} {
		if !strings.Contains(said, word) || strings.Contains(said, "hunter2") {
			t.Errorf("Load warned:\n%swant %s", said, word)
		}
	}
}

func TestProviderEqual(t *testing.T) {
	one, two := load(t, offers), load(t, offers)
	if !provider(t, one, "north").Equal(provider(t, two, "north")) {
		t.Error("two readings of one file differ")
	}
	provider(t, two, "north").Pools[0].Labels[0].FlavorName = "x"
	if provider(t, one, "north").Equal(provider(t, two, "north")) {
		t.Error("a changed label was not seen")
	}
}

// Of a provider whose driver we lack it is known which images it lists.
func TestForeignProviders(t *testing.T) {
	cfg, err := Load(write(t, "nodepool.yaml", `
zookeeper-servers: [{host: zk}]
labels: []
diskimages: [{name: debian, elements: [vm]}]
providers:
  - {name: east, driver: azure, region-name: x, diskimages: [{name: debian}], pools: []}
`), Options{Env: alone()})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(cfg.Foreign); got != "[{east azure [debian]}]" {
		t.Errorf("foreign: %s", got)
	}
}
