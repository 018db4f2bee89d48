package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers/openstack"
)

// stackVariable names the folder of a running stack. `make test-openstack`
// starts one and sets it; without it there is nothing to test against.
const stackVariable = "POOLKEEPER_OPENSTACK"

// The clouds in the stack's clouds.yaml, and how many servers each has room for.
const (
	bigCloud        = "local" // 20 servers
	smallCloud      = "small" // a user without any right beyond "member"
	smallRoom       = 4
	smallCredential = "small-credential" // that user's application credential
	siteCloud       = "site"             // the same for whole sites, so that both may be tested at a time
	siteCredential  = "site-credential"
	refusingCloud   = "refusing"    // and for TestSiteRefusing, beside both
	adminCloud      = "local-admin" // only to ask what others may
)

func TestMain(m *testing.M) {
	if os.Getenv(stackVariable) == "" {
		fmt.Printf("%s is not set: make test-openstack runs these tests\n", stackVariable)
		return
	}
	dir, err := os.MkdirTemp("", "poolkeeper")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = sync.OnceValues(func() (string, error) { return build(dir) })
	m.Run()
}

// program is the path of the built binary.
var program func() (string, error)

func build(dir string) (string, error) {
	path := filepath.Join(dir, "poolkeeper")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "poolkeeper/cmd/poolkeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does, which has compiled it
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
}

// cloudsFile is the clouds.yaml of the running stack.
func cloudsFile() string { return filepath.Join(os.Getenv(stackVariable), "clouds.yaml") }

// section is a provider of the configuration.
func section(cloud string) configs.Provider {
	return configs.Provider{
		Name: "stack-" + cloud, Driver: configs.DriverOpenStack, Cloud: cloud, ImageFormat: "qcow2",
		ImageUploadTimeout: 5 * time.Minute, LaunchTimeout: 5 * time.Minute, PortCleanupEvery: time.Minute,
		DiskImages: []configs.ProviderImage{{Name: "debian"}},
		Pools: []configs.Pool{{
			Name: "main", MaxServers: -1, MaxCores: -1, MaxRAM: -1, Networks: []string{"public"}, AutoFloatingIP: true,
			Labels: []configs.PoolLabel{{
				Name: "tiny", DiskImage: "debian", FlavorName: "ci.tiny", KeyName: "ci-key",
				Networks: []string{"public"}, InstanceProperties: map[string]string{"purpose": "test"},
			}},
		}},
	}
}

// environment makes the stack's clouds.yaml the one that is read.
func environment(file string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name == "OS_CLIENT_CONFIG_FILE" {
			return file, true
		}
		return "", false
	}
}

// open opens a provider that reads a clouds.yaml.
func open(tb testing.TB, cfg configs.Provider, file string) *openstack.Provider {
	tb.Helper()
	return openWith(tb, cfg, openstack.Options{Env: environment(file)})
}

// openWith opens a provider. POOLKEEPER_TRACE=1 shows every call.
func openWith(tb testing.TB, cfg configs.Provider, opts openstack.Options) *openstack.Provider {
	tb.Helper()
	if os.Getenv("POOLKEEPER_TRACE") != "" {
		opts.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Trace})
	}
	p, err := openstack.New(cfg, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// bootable makes an image that the hypervisor accepts: 2 MiB of disk, all of
// them in the file.
func bootable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.qcow2")
	run(t, "qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=full", path, "2M")
	return path
}

// aside is a context for what is done when a test is over.
func aside(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 2*time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

// remove undoes what a test made.
func remove(tb testing.TB, undo func() error) {
	tb.Helper()
	if err := undo(); err != nil {
		tb.Errorf("cleaning: %v", err)
	}
}

// pause waits, for what only time brings.
func pause(tb testing.TB, d time.Duration) {
	tb.Helper()
	select {
	case <-time.After(d):
	case <-tb.Context().Done():
	}
}

// serve serves a folder over HTTP.
func serve(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL
}

// run runs a program.
func run(tb testing.TB, name string, args ...string) {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), name, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
