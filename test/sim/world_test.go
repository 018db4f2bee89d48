package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
)

const (
	servers        = 3
	sessionTimeout = 10 * time.Second
	tick           = time.Second
	// rest is how long everything may take to go on after the last fault.
	rest = time.Minute
)

// world is one simulation.
type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	cluster *zookeeper.Cluster
	judge   *judge
	agents  []*agent
	started int
	network *stage.Network
}

// outcome is what a simulation has come to.
type outcome struct {
	seed    uint64
	line    *stage.Timeline
	took    time.Duration // of virtual time
	writes  int
	effects int
	turns   int
}

// run has agents live in a world of faults for some time, and then in one without. It must
// be called in a bubble of testing/synctest.
func run(t *testing.T, seed uint64, agents int, length time.Duration) outcome {
	t.Helper()
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), judge: newJudge()}
	w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: seed, Tick: tick, Committed: w.judge.committed})
	defer w.cluster.Close()
	w.network = &stage.Network{Cluster: w.cluster, Servers: servers, Line: w.judge.Timeline, Rand: w.rng, Longest: 2 * sessionTimeout}
	w.prepare()
	for i := range agents {
		w.agents = append(w.agents, w.start(fmt.Sprintf("a%d", i+1)))
	}
	for w.judge.Age() < length {
		w.wait(time.Duration(w.rng.Int64N(int64(8 * time.Second))))
		w.fault()
	}
	var hosts []*stage.Machine
	for _, a := range w.agents {
		hosts = append(hosts, a.host)
	}
	w.network.Heal(hosts...)
	w.settle()
	for _, a := range w.agents {
		a.stop()
	}
	return w.outcome()
}

func (w *world) outcome() outcome {
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	o := outcome{seed: w.seed, line: w.judge.Timeline, took: w.judge.Age(), writes: w.judge.records, effects: w.judge.effects}
	for _, n := range w.judge.turns {
		o.turns += n
	}
	return o
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

// settle: behind the last fault every agent gets a lock again, soon.
func (w *world) settle() {
	before := map[string]int{}
	w.judge.mu.Lock()
	for _, a := range w.agents {
		before[a.name] = w.judge.turns[a.name]
	}
	w.judge.mu.Unlock()
	w.wait(rest)
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	for _, a := range w.agents {
		if w.judge.turns[a.name] == before[a.name] {
			w.judge.Wrong(a.name, "has not held a lock for %s, and nothing is in its way", rest)
		}
	}
}
