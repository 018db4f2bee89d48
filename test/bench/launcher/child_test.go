package launcher_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/bench"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/event/observe"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// childCommand makes the test binary a launcher.
const childCommand = "bench-launcher"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		runChild(os.Args[2])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == collectorCommand {
		runCollector()
		return
	}
	m.Run()
}

// child is a launcher in a process of its own, so that what it takes can be told
// from what the requestor takes.
type child struct {
	Server    string
	Instances int // of the cloud
	Boot      time.Duration
	Events    bool   // changes are told, also those of others, and sent to a file
	Fleet     bool   // decisions stand under the fleet's lock
	Traces    string // the collector of traces; "" is none
}

func runChild(arg string) {
	var c child
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		panic(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{c.Server}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	if c.Traces != "" {
		_ = os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Traces)
	}
	tracer := c.tracer(ctx)
	var gate *fleet.Gate
	if c.Fleet {
		nobody := func() ([]ed25519.PublicKey, error) { return nil, nil }
		gate = fleet.NewGate("bench", fleet.NewAgent("launcher", "bench", "", nobody, hclog.NewNullLogger()), hclog.NewNullLogger())
		go func() { _ = gate.Run(ctx, client) }()
	}
	l, err := launcher.New(c.config(), launcher.Deps{
		Client: client, Deciding: gate.Enter, Hostname: "bench", Tracer: tracer, Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn}),
		Open: func(p configs.Provider) (providers.Provider, error) { return fake.New(p, hclog.NewNullLogger()) },
	})
	if err != nil {
		panic(err)
	}
	if c.Events {
		dir, err := os.MkdirTemp("", "events")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		events := dispatch.New(dispatch.Deps{Client: client, Writer: "/poolkeeper/launcher/bench", Member: "bench", Logger: hclog.NewNullLogger()})
		events.Set(&dispatch.Options{Keep: 10_000, Age: time.Hour, Sinks: []dispatch.Sink{{Name: "file", File: filepath.Join(dir, "events"), Timeout: time.Second}}})
		for _, part := range []observe.Part{observe.Images, observe.Requests} {
			events.Beside(observe.New(part, observe.Deps{Client: client, Tree: l.Tree(), Member: "bench", Logger: hclog.NewNullLogger()}).Run)
		}
		go events.Run(ctx)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := l.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := tracer.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	client.Close()
}

// config has a pool main for what is measured and a pool full, which has no room.
func (c child) config() *configs.Config {
	pool := func(name string, servers int, labels ...string) configs.Pool {
		p := configs.Pool{Name: name, MaxServers: servers, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1}
		for _, label := range labels {
			p.Labels = append(p.Labels, configs.PoolLabel{Name: label, CloudImage: "image"})
		}
		return p
	}
	return &configs.Config{
		Labels: []configs.Label{{Name: "small"}, {Name: "huge"}},
		Providers: []configs.Provider{{
			Name: "cloud", Driver: configs.DriverFake, MaxConcurrency: -1, LaunchRetries: 3, LaunchTimeout: time.Minute,
			Settings:    &configs.FakeDriver{MaxInstances: c.Instances, BootDelay: c.Boot},
			CloudImages: []configs.CloudImage{{Name: "image", Username: "root", ConnectionType: "ssh", ConnectionPort: 22}},
			Pools:       []configs.Pool{pool("main", -1, "small"), pool("full", 1, "huge")},
		}},
	}
}

// spawn starts a launcher that ends with the benchmark.
func (c child) spawn(b *testing.B) *exec.Cmd {
	b.Helper()
	cmd, stop := c.start(b)
	b.Cleanup(stop)
	return cmd
}

// start starts a launcher, and returns what ends it.
func (c child) start(b *testing.B) (cmd *exec.Cmd, stop func()) {
	b.Helper()
	return bench.Spawn(b, childCommand, c)
}
