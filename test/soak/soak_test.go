package soak

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

var (
	length = flag.Duration("soak", time.Minute, "how long requestors and killers are let loose")
	logs   = flag.String("soak-logs", "", "a folder to keep the launchers' logs in")
	seed   = flag.Uint64("seed", 0, "what they do; 0 draws a seed")
)

const (
	launchers  = 3
	requestors = 10
)

// world is all that takes part.
type world struct {
	t        *testing.T
	ensemble *zktest.Ensemble
	binary   string
	config   string
	clouds   string
	limited  bool // a tenant is
	watch    *watch
}

func TestSoak(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	w := newWorld(t)
	w.watch = newWatch(t, w)
	watching, blind := context.WithCancel(t.Context())
	defer blind()
	var looking sync.WaitGroup
	looking.Go(func() { w.watch.run(watching) })
	procs := make([]*process, launchers)
	for i := range procs {
		procs[i] = w.spawn(i)
	}
	calm, quiet := context.WithTimeout(t.Context(), *length)
	defer quiet()
	var busy sync.WaitGroup
	for i := range requestors {
		busy.Go(func() { newCustomer(w, i).live(calm) })
	}
	busy.Go(func() { w.killLaunchers(calm, procs) })
	busy.Go(func() { w.killServers(calm) })
	busy.Wait()
	settled := w.settle()
	blind()
	looking.Wait()
	for _, p := range procs {
		if settled {
			p.retire(w)
		} else {
			p.dump()
		}
	}
	w.watch.report()
}

// newWorld starts the servers and builds the program.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, ensemble: zktest.StartEnsemble(t, 3), limited: *seed%2 == 0,
		binary: filepath.Join(dir, "poolkeeper"), config: filepath.Join(dir, "nodepool.yaml"), clouds: filepath.Join(dir, "clouds"),
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", w.binary, "poolkeeper/cmd/poolkeeper")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	if err := os.WriteFile(w.config, []byte(configure(w.ensemble.Addrs(), w.clouds, w.limited)), 0o600); err != nil {
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
