package site

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	servers        = 3
	sessionTimeout = 10 * time.Second
	tick           = time.Second
	longest        = 2 * sessionTimeout // how long a fault lasts
	launchers      = 3
	requestors     = 4
)

// world is one simulation.
type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	cluster *zookeeper.Cluster
	network *stage.Network
	judge   *judge
	clouds  map[string]account
	all     []version // of the configuration
	version version   // that launchers start with
	started int
	hosts   []*process // the process that each host runs
	zuuls   []*requestor
	calm    chan struct{}  // closed when requestors begin nothing more
	ends    sync.WaitGroup // of what runs on by itself
	looker  *recipe.Client // an operator's; no fault meets it
	store   *zkmodel.Store
}

// outcome is what a simulation has come to.
type outcome struct {
	seed  uint64
	line  *stage.Timeline
	took  time.Duration // of virtual time
	moves map[string]int
}

// run has a site live in a world of faults for some time, and then in one without. It must be
// called in a bubble of testing/synctest.
func run(t *testing.T, seed uint64, length time.Duration) outcome {
	t.Helper()
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), clouds: map[string]account{}, calm: make(chan struct{}), all: versions(seed)}
	w.version = w.all[0]
	w.judge = newJudge(w)
	w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: seed, Tick: tick, Committed: w.judge.committed})
	defer w.cluster.Close()
	w.network = &stage.Network{Cluster: w.cluster, Servers: servers, Line: w.judge.Timeline, Rand: w.rng, Longest: longest}
	w.prepare()
	for i := range launchers {
		w.hosts = append(w.hosts, w.start(fmt.Sprintf("l%d", i+1)))
	}
	for i := range requestors {
		w.zuuls = append(w.zuuls, w.request(fmt.Sprintf("z%d", i+1)))
	}
	for w.judge.Age() < length {
		wait(time.Duration(w.rng.Int64N(int64(15 * time.Second))))
		w.fault()
	}
	w.heal()
	w.settle()
	for _, p := range w.hosts {
		p.stop()
	}
	w.ends.Wait()
	w.looker.Close()
	return outcome{seed: seed, line: w.judge.Timeline, took: w.judge.Age(), moves: w.judge.reached()}
}

// prepare makes what launchers find: clouds, with what others have made there, and images.
func (w *world) prepare() {
	client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, Dial: w.cluster.Dialer(operator)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.looker = client
	session, err := client.Session(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = zkmodel.NewStore(session, nil)
	cfg := w.version.load(w.t)
	for _, section := range cfg.Providers {
		w.clouds[section.Name] = openTable(w.t, section)
		for n := range 2 {
			w.settleForeign(section.Name, n)
		}
	}
	for _, image := range cfg.DiskImages {
		w.image(image.Name)
	}
}

// heal ends all faults; what has crashed is there again.
func (w *world) heal() {
	var machines []*stage.Machine
	for _, p := range w.hosts {
		machines = append(machines, p.Machine)
	}
	for _, z := range w.zuuls {
		machines = append(machines, z.Machine)
	}
	w.network.Heal(machines...)
	for i, p := range w.hosts {
		p.crashes("")
		if p.isDead() {
			<-p.done
			w.hosts[i] = w.start(p.host)
		}
	}
}

// logger writes into the timeline what a process tells, when that is asked for.
func (w *world) logger(name string) hclog.Logger {
	if !*logs {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, DisableTime: true, Output: told{w.judge.Timeline, name}})
}

// told is where a process's log goes.
type told struct {
	line *stage.Timeline
	name string
}

// Write implements io.Writer.
func (l told) Write(text []byte) (int, error) {
	l.line.Note(l.name, "%s", slices.Clone(text[:max(0, len(text)-1)]))
	return len(text), nil
}
