package configs

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLoadMissingFile(t *testing.T) {
	for name, opts := range map[string]Options{
		"/does/not/exist.yaml": {},
		"poolkeeper.yaml":      {SecurePath: "/does/not/exist.yaml"},
	} {
		_, err := Load(name, opts)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/does/not/exist.yaml") {
			t.Errorf("Load(%s) = %v, want the missing file", name, err)
		}
	}
}

// What is no file, and what is no configuration, is told with its name.
func TestLoadWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(large, nil, 0o600), os.Truncate(large, maxFile+1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"/dev/zero": errNotRegular, pipe: errNotRegular, dir: errNotRegular, large: errTooLarge,
	} {
		if _, err := Load(name, Options{Env: alone()}); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("Load(%s) = %v, want %v", name, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	c := load(t, site+`
providers:
  - name: north
    cloud: example
    diskimages: [{name: debian}]
    pools: [{name: main, labels: [{name: small, min-ram: 1, diskimage: debian}]}]
`)
	if got, want := c.WebApp, (WebApp{Port: 8005, ListenAddress: "0.0.0.0"}); !reflect.DeepEqual(got, want) {
		t.Errorf("webapp %v, want %v", got, want)
	}
	if got, want := c.ZooKeeper.Servers, []string{"localhost:2281"}; !cmp.Equal(got, want) {
		t.Errorf("servers %v, want %v", got, want)
	}
	if slices.Contains(c.BuildEnvAllow, "TMPDIR") { // see basicEnvironment
		t.Error("builds see the daemon's TMPDIR")
	}
	if c.ZooKeeper.Timeout != 10*time.Second || c.BuildLogRetention != 7 || c.MaxHoldAge != 0 {
		t.Errorf("timeout %v, retention %d, hold %v", c.ZooKeeper.Timeout, c.BuildLogRetention, c.MaxHoldAge)
	}
	wantImage := &DiskImage{
		Name: "debian", EnvVars: EnvVars{}, Metadata: map[string]string{}, RebuildAge: 24 * time.Hour,
		RebuildTimezone: "UTC", RebuildJitter: 10, KeepBuilds: 2, BuildTimeout: 8 * time.Hour,
		DIBCmd: "disk-image-create", Username: "zuul", PythonPath: "auto",
	}
	if diff := cmp.Diff(wantImage, image(t, c, "debian")); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	wantProvider := &Provider{
		Name: "north", Driver: "openstack", Cloud: "example", MaxConcurrency: -1, Priority: 100,
		UnansweredCreateTimeout: 5 * time.Minute,
		Rate:                    time.Second, BootTimeout: time.Minute, LaunchTimeout: time.Hour, LaunchRetries: 3,
		ImageUploadTimeout: time.Hour, ImageNameFormat: "{image_name}-{timestamp}", ImageFormat: "qcow2",
		PortCleanupEvery: 10 * time.Minute,
		DiskImages: []ProviderImage{{
			Name: "debian", ConnectionType: "ssh", ConnectionPort: 22, Meta: map[string]string{},
		}},
		Pools: []Pool{{
			Name: "main", MaxServers: -1, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1,
			AutoFloatingIP: true, HostKeyChecking: true, NodeAttributes: map[string]any{}, Priority: 100,
			Labels: []PoolLabel{{Name: "small", DiskImage: "debian", MinRAM: 1, VolumeSize: 50}},
		}},
	}
	if diff := cmp.Diff(wantProvider, provider(t, c, "north")); diff != "" {
		t.Errorf("openstack (-want +got):\n%s", diff)
	}
}

func TestDefaultsOfOtherDrivers(t *testing.T) {
	c := load(t, site+`
providers:
  - {name: pretended, driver: fake}
  - name: racks
    driver: static
    priority: 7
    pools: [{name: main, nodes: [{name: metal, labels: small}]}]
  - {name: here, driver: local}
`)
	wantFake := &FakeDriver{MaxInstances: 20, BootDelay: 100 * time.Millisecond, FailEvery: map[string]int{}}
	if diff := cmp.Diff(wantFake, provider(t, c, "pretended").Settings, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("fake (-want +got):\n%s", diff)
	}
	wantLocal := &LocalDriver{Dir: "/var/lib/poolkeeper/here", Accel: "auto", MaxGuests: 2, Memory: 1024, Cores: 1}
	if diff := cmp.Diff(wantLocal, provider(t, c, "here").Settings); diff != "" {
		t.Errorf("local (-want +got):\n%s", diff)
	}
	pool := provider(t, c, "racks").Pools[0]
	wantNode := StaticNode{
		Name: "metal", Labels: []string{"small"}, Username: "zuul", Timeout: 5 * time.Second, HostKeyChecking: true,
		ConnectionPort: 22, ConnectionType: "ssh", PythonPath: "auto", MaxParallelJobs: 1,
	}
	if diff := cmp.Diff(wantNode, pool.Nodes[0]); diff != "" || pool.Priority != 7 {
		t.Errorf("priority %d, static node (-want +got):\n%s", pool.Priority, diff)
	}
}

func TestEnvironment(t *testing.T) {
	text := `zookeeper-servers: [{host: localhost, port: %(NODEPOOL_PORT)}]
diskimages:
  - name: debian
    env-vars: {KEY: "%(NODEPOOL_LINES)", HOME: "%(HOME)", UNSET: "%(NODEPOOL_UNSET)", S: "%(NODEPOOL_PORT)s"}
# %(NODEPOOL_COMMENT)
max-hold-age: soon
`
	env := environment(map[string]string{"NODEPOOL_PORT": "2181", "NODEPOOL_LINES": "one\n\n\ntwo", "HOME": "/root"})
	path := write(t, "nodepool.yaml", text)
	_, err := Load(path, Options{Env: env})
	if err == nil || !strings.HasPrefix(err.Error(), path+":6: max-hold-age: ") {
		t.Errorf("Load = %v, want an error of line 6", err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, "soon", "1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"KEY": "one\n\ntwo", "HOME": "%(HOME)", "UNSET": "%(NODEPOOL_UNSET)", "S": "2181s"}
	if diff := cmp.Diff(want, map[string]string(image(t, c, "debian").EnvVars)); diff != "" {
		t.Errorf("env-vars (-want +got):\n%s", diff)
	}
	wantWarning := path + ":4: environment variable NODEPOOL_UNSET is not set, %(NODEPOOL_UNSET) stays as it is"
	if !cmp.Equal(c.Warnings, []string{wantWarning}) {
		t.Errorf("warnings %q, want %q", c.Warnings, wantWarning)
	}
}

func TestByteOrderMarkAndCarriageReturns(t *testing.T) {
	c := load(t, "\xef\xbb\xbf"+strings.ReplaceAll(site, "\n", "\r\n"))
	if c.ImagesDir != "/images" || len(c.DiskImages) != 1 {
		t.Errorf("images-dir %q, %d images", c.ImagesDir, len(c.DiskImages))
	}
	got := loadFails(t, strings.ReplaceAll(site+"max-hold-age: x\n", "\n", "\r\n"), false)
	if want := `nodepool.yaml:6: max-hold-age: expected an integer, got "x"`; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestDriverByName(t *testing.T) {
	c := load(t, site+`
providers:
  - {name: fake-one}
  - {name: fake-two, driver: openstack, cloud: x}
  - {name: three, driver: fake}
`)
	for name, want := range map[string]string{"fake-one": "fake", "fake-two": "openstack", "three": "fake"} {
		if got := provider(t, c, name).Driver; got != want {
			t.Errorf("%s has driver %s, want %s", name, got, want)
		}
	}
	if len(c.Warnings) != 1 {
		t.Errorf("warnings %q, want one about fake-one", c.Warnings)
	}
}

func TestForeignDriversAreLeftAlone(t *testing.T) {
	c := load(t, site+`
providers:
  - {name: amazon, driver: azure, whatever: 1}
  - {name: north, cloud: x}
`)
	if len(c.Providers) != 1 || !cmp.Equal(c.Skipped, []SkippedProvider{{Name: "amazon", Driver: "azure"}}) {
		t.Errorf("providers %v, skipped %v", c.Providers, c.Skipped)
	}
	if !c.IsSkipped("amazon") || c.IsSkipped("north") {
		t.Error("IsSkipped is wrong")
	}
}

func TestFindingsAreErrorsAs(t *testing.T) {
	_, err := Load(write(t, "x.yaml", site+"max-hold-age: x\nwebapp: y\n"), Options{Env: alone()})
	var finding *Finding
	if !errors.As(err, &finding) || finding.Line != 6 || finding.Key != "max-hold-age" {
		t.Errorf("finding %+v of %v", finding, err)
	}
	if got := strings.Count(err.Error(), "\n"); got != 1 {
		t.Errorf("%d line breaks in %q, want one error a line", got, err)
	}
}

// A service of systemd has no HOME: ~ is still the home of who runs it, and its
// key is read.
func TestHomeWithoutHOME(t *testing.T) {
	us, err := user.Current()
	if err != nil {
		lacking(t, "user of ours: "+err.Error())
	}
	for _, set := range []bool{false, true} { // unset, and empty
		t.Setenv("HOME", "")
		if !set {
			if err := os.Unsetenv("HOME"); err != nil {
				t.Fatal(err)
			}
		}
		config, err := Load(write(t, "nodepool.yaml", site+`
providers:
  - {name: one, driver: local, dir: ~/guests, authorized-keys: [~/no such key.pub]}
  - {name: two, driver: local}
`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := SettingsOf[LocalDriver](&config.Providers[0]).Dir, filepath.Join(us.HomeDir, "guests"); got != want {
			t.Errorf("HOME set %t: dir %s, want %s", set, got, want)
		}
		want := filepath.Join(us.HomeDir, "no such key.pub")
		if told := strings.Join(config.Warnings, "\n"); !strings.Contains(told, want) {
			t.Errorf("HOME set %t: no warning names %s:\n%s", set, want, told)
		}
	}
}
