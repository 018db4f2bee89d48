package scale

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

var (
	series = flag.Bool("scale.series", false, "count for all sizes, each in a process of its own")
	one    = flag.String("scale.size", "", "count for one size: NODES,LAUNCHERS")
)

// size is a site's.
type size struct{ nodes, launchers int }

var sizes = []size{
	{100, 3},
	{1000, 3},
	{10_000, 3},
	{100_000, 3},
	{2000, 1},
	{2000, 3},
	{2000, 10},
	{2000, 50},
	{2000, 200},
}

// Mistakes: a launcher that asks nothing, or again and again for what it knows.
func TestFewNodes(t *testing.T) {
	figures := count(t, size{100, 2}, 5)
	if figures.requests < 10 || figures.requests > 300 {
		t.Errorf("%.1f requests for an answer", figures.requests)
	}
}

// TestSeries prints how needs grow; make sim-scale runs it.
func TestSeries(t *testing.T) {
	if *one != "" {
		var s size
		if _, err := fmt.Sscanf(*one, "%d,%d", &s.nodes, &s.launchers); err != nil {
			t.Fatal(err)
		}
		fmt.Println(count(t, s, 20))
		return
	}
	if !*series {
		t.Skip("takes minutes: make sim-scale")
	}
	for _, s := range sizes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSeries$", "-scale.size", fmt.Sprintf("%d,%d", s.nodes, s.launchers))
		cmd.Env = append(os.Environ(), "GOMEMLIMIT=7GiB")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%+v: %v\n%s", s, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "Benchmark") {
				fmt.Print(line)
			}
		}
	}
}

// figures are what is counted for a size.
type figures struct {
	size
	start                   int     // requests of all launchers until they rest
	requests, bytes, events float64 // for one answer, by all
	memory                  float64 // MiB, of all launchers and servers together
	cpu                     time.Duration
}

// String is a line as benchmarks print it.
func (f figures) String() string {
	return fmt.Sprintf("BenchmarkSimulated/nodes=%d/launchers=%d 1 %d sim-start-requests %.2f sim-requests/answer %.0f sim-bytes/answer %.2f sim-events/answer %.0f sim-MiB %.1f sim-cpu-s",
		f.nodes, f.launchers, f.start, f.requests, f.bytes, f.events, f.memory, f.cpu.Seconds())
}

// count has launchers answer requests beside so many ready nodes.
func count(t *testing.T, s size, asked int) (f figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f.size = s
		cluster := zookeeper.New(zookeeper.Options{Servers: 3, Seed: 1, Tick: time.Second})
		defer cluster.Close()
		fill(t, cluster, s.nodes)
		for n := range s.launchers {
			launch(t, cluster, n, s.nodes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		requestor, err := zuul.DialBy(ctx, cluster.Dialer("zuul"), cluster.Addrs(), "", "bench", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			requestor.Close()
			<-time.After(time.Minute)
		}()
		ask(ctx, t, requestor)
		<-time.After(time.Minute) // until all rest
		before := cluster.Traffic()
		f.start = before.Requests
		for range asked {
			ask(ctx, t, requestor)
			<-time.After(time.Second) // the others have seen it, too
		}
		after, n := cluster.Traffic(), float64(asked)
		f.requests, f.events = float64(after.Requests-before.Requests)/n, float64(after.Events-before.Events)/n
		f.bytes = float64(after.Bytes-before.Bytes) / n
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		f.memory = float64(memory.HeapAlloc) / (1 << 20)
	})
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err == nil {
		f.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return f
}

// fill makes the tree that launchers find.
func fill(t *testing.T, cluster *zookeeper.Cluster, nodes int) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: cluster.Addrs(), Dial: cluster.Dialer("operator")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot} {
		if err := session.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	now := zkmodel.EpochOf(time.Now())
	cluster.Fill(nodes, func(n int) (string, []byte) {
		node := &zkmodel.Node{
			Provider: "cloud", Pool: "main", Type: zkmodel.Strings{"small"}, InterfaceIP: "fake", HostKeys: zkmodel.Strings{"ssh-rsa FAKEKEY"},
			Resources: map[string]int{"instances": 1, "cores": 4, "ram": 8192}, ExternalID: zkmodel.TextValue("external-" + strconv.Itoa(n)),
		}
		node.State, node.StateTime, node.CreatedTime = zkmodel.NodeReady, now, now
		data, err := node.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s/%010d", zkmodel.NodesRoot, n), data
	})
}

// look is how long a launcher looks at one node when it decides: about what it takes on two cores.
// In virtual time it would take none, and a launcher that starts would decide anew for each node
// that it reads.
const look = 5 * time.Microsecond

// launch starts a launcher that ends with the test.
func launch(t *testing.T, cluster *zookeeper.Cluster, n, nodes int) {
	t.Helper()
	name := fmt.Sprintf("launcher-%d", n)
	client, err := recipe.Dial(recipe.Config{Servers: cluster.Addrs(), Timeout: 20 * time.Second, Dial: cluster.Dialer(name)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := launcher.New(configuration(), launcher.Deps{
		Client: client, Hostname: name, Logger: hclog.NewNullLogger(),
		Deciding: func(context.Context) func() {
			<-time.After(time.Duration(nodes+100) * look)
			return func() {}
		},
		Open: func(p configs.Provider) (providers.Provider, error) { return fake.New(p, hclog.NewNullLogger()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		client.Close()
	})
}

// configuration is one pool without limits, as in the series on real servers.
func configuration() *configs.Config {
	return &configs.Config{
		Labels: []configs.Label{{Name: "small"}},
		Providers: []configs.Provider{{
			Name: "cloud", Driver: configs.DriverFake, MaxConcurrency: -1, LaunchRetries: 3, LaunchTimeout: time.Minute,
			Settings:    &configs.FakeDriver{MaxInstances: 1_000_000},
			CloudImages: []configs.CloudImage{{Name: "image", Username: "root", ConnectionType: "ssh", ConnectionPort: 22}},
			Pools: []configs.Pool{{
				Name: "main", MaxServers: -1, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1,
				Labels: []configs.PoolLabel{{Name: "small", CloudImage: "image"}},
			}},
		}},
	}
}

// ask makes a request, waits until it is fulfilled, and withdraws it, so that the node is ready again.
func ask(ctx context.Context, t *testing.T, requestor *zuul.Client) {
	t.Helper()
	id, err := requestor.Submit(zuul.Wish{Labels: []string{"small"}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := requestor.Wait(ctx, id)
	if err != nil || out.State != "fulfilled" {
		t.Fatalf("%+v: %v", out, err)
	}
	if err := requestor.Cancel(id); err != nil {
		t.Fatal(err)
	}
}
