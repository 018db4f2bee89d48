package scale_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder"
	"poolkeeper/builder/dib"
	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/bench"
	"poolkeeper/zkmodel/recipe"
)

// childCommand makes the test binary a daemon.
const childCommand = "bench-scale"

// The test binary is also the daemons that it measures, and the guard of their builds.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == dib.GuardCommand {
		if err := dib.Guard(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		if err := runChild(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // this is main
		}
		return
	}
	m.Run()
}

// child is a daemon in a process of its own: what it takes can be told from what asks it takes.
type child struct {
	Server    string
	Host      string // its name; no two have the same
	Dir       string // of its files, and of the clouds of all
	Images    int    // of a builder; 0 is a launcher
	Providers int
	Keep      int // builds that are kept
}

// daemon is a builder or a launcher.
type daemon interface {
	Run(ctx context.Context) error
}

func runChild(arg string) error {
	var c child
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		return err
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{c.Server}})
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := c.daemon(client)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return d.Run(ctx)
}

func (c child) daemon(client *recipe.Client) (daemon, error) {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Error})
	open := func(p configs.Provider) (providers.Provider, error) { return fake.New(p, hclog.NewNullLogger()) }
	if c.Images == 0 {
		return launcher.New(launches(), launcher.Deps{Client: client, Hostname: c.Host, Logger: logger, Open: open})
	}
	return builder.New(c.builds(), builder.Deps{Client: client, Hostname: c.Host, FQDN: c.Host, Logger: logger, Open: open})
}

// launches is the configuration of launchers: one pool without limits.
func launches() *configs.Config {
	return &configs.Config{
		Labels: []configs.Label{{Name: "small"}},
		Providers: []configs.Provider{{
			Name: provider(0), Driver: configs.DriverFake, MaxConcurrency: -1, LaunchRetries: 3, LaunchTimeout: time.Minute,
			Settings:    &configs.FakeDriver{MaxInstances: 100_000},
			CloudImages: []configs.CloudImage{{Name: "image", Username: "root", ConnectionType: "ssh", ConnectionPort: 22}},
			Pools: []configs.Pool{{
				Name: "main", MaxServers: -1, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1,
				Labels: []configs.PoolLabel{{Name: "small", CloudImage: "image"}},
			}},
		}},
	}
}

// builds is the configuration of builders: each image at each provider.
func (c child) builds() *configs.Config {
	home := filepath.Join(c.Dir, c.Host)
	cfg := &configs.Config{
		Path: "nodepool.yaml", ImagesDir: filepath.Join(home, "images"), BuildLogDir: filepath.Join(home, "logs"),
		BuildLogRetention: 7, BuildEnvAllow: []string{"PATH"},
	}
	var offered []configs.ProviderImage
	for n := range c.Images {
		cfg.DiskImages = append(cfg.DiskImages, configs.DiskImage{
			Name: image(n), DIBCmd: "'" + filepath.Join(c.Dir, "instant") + "'", RebuildAge: 24 * time.Hour, KeepBuilds: c.Keep,
			RebuildTimezone: "UTC", BuildTimeout: time.Minute,
		})
		offered = append(offered, configs.ProviderImage{Name: image(n)})
	}
	for n := range c.Providers {
		cfg.Providers = append(cfg.Providers, configs.Provider{
			Name: provider(n), Driver: configs.DriverFake, ImageFormat: "qcow2", ImageUploadTimeout: time.Minute,
			Settings: &configs.FakeDriver{Dir: filepath.Join(c.Dir, "clouds"), MaxInstances: 1}, DiskImages: offered,
		})
	}
	return cfg
}

func image(n int) string    { return fmt.Sprintf("image-%04d", n) }
func provider(n int) string { return fmt.Sprintf("cloud-%02d", n) }

// spawn starts a daemon that ends with the benchmark.
func (c child) spawn(b *testing.B) (pid int) {
	b.Helper()
	cmd, stop := bench.Spawn(b, childCommand, c)
	b.Cleanup(stop)
	return cmd.Process.Pid
}

// resident is what the process that holds most has in memory, in MiB.
func resident(b *testing.B, pids []int) (most float64) {
	b.Helper()
	for _, pid := range pids {
		most = max(most, bench.Resident(b, pid))
	}
	return most
}
