package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
)

// What a simulation is like.
const (
	agents         = 3
	length         = 10 * time.Minute
	gap            = 4 * time.Second // between two faults
	servers        = 3
	sessionTimeout = 10 * time.Second
	tick           = time.Second
)

// world is one simulation.
type world struct {
	t       *testing.T
	seed    *series.Seed
	rng     *rand.Rand // of the fault that is made
	cluster *zookeeper.Cluster
	judge   *judge
	agents  []*agent
	started int
	network *stage.Network
	others  sync.WaitGroup // what goes on beside
}

// run has agents live in a world of faults for some time, and then in one without.
func run(t *testing.T, seed *series.Seed) {
	t.Helper()
	w := &world{t: t, seed: seed, judge: newJudge(seed.Timeline)}
	w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: seed.Number, Tick: tick, Committed: w.judge.committed})
	defer w.cluster.Close()
	w.judge.trusted = w.cluster.Trusted
	w.network = &stage.Network{Cluster: w.cluster, Servers: servers, Line: seed.Timeline, Longest: 2 * sessionTimeout}
	w.prepare()
	for i := range agents {
		w.agents = append(w.agents, w.start(fmt.Sprintf("a%d", i+1)))
	}
	for f := range seed.Faults(gap, seed.Part(length)) {
		w.rng, w.network.Rand = f.Rand, f.Rand
		w.fault()
	}
	var hosts []*stage.Machine
	for _, a := range w.agents {
		hosts = append(hosts, a.host)
	}
	w.others.Wait()
	w.network.Heal(hosts...)
	w.settle()
	for _, a := range w.agents {
		a.stop()
	}
	seed.Lived(agents * seed.Age())
}

func (w *world) wait(d time.Duration) { <-time.After(d) }

// prepare makes what the agents work on.
func (w *world) prepare() {
	conn := w.operator()
	defer conn.Close()
	open := zk.WorldACL(zk.PermAll)
	for _, path := range []string{"/sim", locks, records} {
		if _, err := conn.Create(path, nil, 0, open); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range recordCount {
		for _, path := range []string{recordAt(i), lockOf(recordAt(i))} {
			if _, err := conn.Create(path, []byte("new"), 0, open); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}
