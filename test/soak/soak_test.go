package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

var (
	length = flag.Duration("soak", 15*time.Second, "how long requestors and killers are let loose")
	seed   = flag.Uint64("soak-seed", 0, "what they do; 0 draws a seed")
)

const (
	launchers  = 3
	requestors = 8
	maxServers = 6
	settleTime = 45 * time.Second
)

// configuration has two clouds, one of which has a stock of ready nodes.
const configuration = `
zookeeper-timeout: 2
zookeeper-servers: [%s]
labels: [{name: small, min-ready: 1}, {name: large}]
providers:
  - name: east
    driver: fake
    cloud: fake
    launch-retries: 5
    fake: {dir: %s, max-instances: 100, boot-delay: 0.2, fail-every: {wait: 11, delete-node: 13}}
    cloud-images: [{name: image, username: root}]
    pools: [{name: main, max-servers: %d, labels: [{name: small, cloud-image: image, min-ram: 1024}, {name: large, cloud-image: image, min-ram: 1024}]}]
  - name: west
    driver: fake
    cloud: fake
    launch-retries: 5
    fake: {dir: %s, max-instances: 100, boot-delay: 0.4}
    cloud-images: [{name: image, username: root}]
    pools: [{name: main, max-servers: %d, availability-zones: [w1, w2], labels: [{name: small, cloud-image: image, min-ram: 1024}, {name: large, cloud-image: image, min-ram: 1024}]}]
`

// world is all that takes part.
type world struct {
	t        *testing.T
	ensemble *zktest.Ensemble
	binary   string
	config   string
	clouds   string
	watch    *watch
}

func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-soak-seed %d", *seed)
	w := newWorld(t)
	calm, quiet := context.WithTimeout(t.Context(), *length)
	defer quiet()
	var group sync.WaitGroup
	w.watch = newWatch(t, w)
	watching, blind := context.WithCancel(t.Context())
	defer blind()
	group.Go(func() { w.watch.run(watching) })
	procs := make([]*process, launchers)
	for i := range procs {
		procs[i] = w.spawn(i)
	}
	var busy sync.WaitGroup
	for i := range requestors {
		busy.Go(func() { newCustomer(w, i).live(calm) })
	}
	busy.Go(func() { w.killLaunchers(calm, procs) })
	busy.Go(func() { w.killServers(calm) })
	busy.Wait()
	w.settle()
	blind()
	group.Wait()
	w.watch.report()
}

// newWorld starts the servers and builds the program.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ensemble: zktest.StartEnsemble(t, 3)}
	dir := t.TempDir()
	w.binary, w.config, w.clouds = filepath.Join(dir, "poolkeeper"), filepath.Join(dir, "nodepool.yaml"), filepath.Join(dir, "clouds")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", w.binary, "poolkeeper/cmd/poolkeeper")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	var servers []string
	for _, addr := range w.ensemble.Addrs() {
		host, port, _ := strings.Cut(addr, ":")
		servers = append(servers, fmt.Sprintf("{host: %s, port: %s}", host, port))
	}
	text := fmt.Sprintf(configuration, strings.Join(servers, ", "), w.clouds, maxServers, w.clouds, maxServers)
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// dial connects one more Zuul, however long the servers take.
func (w *world) dial(ctx context.Context, name string) *zuul.Client {
	for {
		patient, cancel := context.WithTimeout(ctx, 5*time.Second)
		c, err := zuul.Dial(patient, w.ensemble.Addrs(), "", name)
		cancel()
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}
