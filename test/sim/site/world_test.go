package site

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What a simulation is like.
const (
	day            = 20 * time.Minute // how long there is much to do
	night          = 60 * time.Minute // and then little
	quiet          = 10               // by how many times less is asked for at night, and goes wrong
	gap            = 8 * time.Second  // between two faults by day
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
	seed    *series.Seed
	rng     *rand.Rand // of the fault that is made
	cluster *zookeeper.Cluster
	network *stage.Network
	judge   *judge
	clouds  *cloud.Cloud
	site    string    // the name of the installation
	all     []version // of the configuration
	version version   // that launchers start with

	restoring atomic.Bool  // a restore is under way
	restores  atomic.Int64 // how often the tree was restored

	mu       sync.Mutex // for moments
	started  int
	spoilt   []spoilt // records, by people
	edited   []edited
	armed    []*armed   // what waits for a launcher that comes to something
	hosts    []*process // the process that each host runs
	zuuls    []*requestor
	calm     chan struct{}   // closed when requestors begin nothing more
	arrived  chan string     // tells a requestor that rests of a label whose image is ready now
	building map[string]bool // images that are built, or are about to be
	others   sync.WaitGroup  // of faults that go on beside
	ends     sync.WaitGroup  // of processes that were killed
	looker   *recipe.Client  // an operator's; no fault meets it
	hand     *recipe.Client  // of one with an editor
	store    *zkmodel.Store
}

// run has a site live in a world of faults for some time, and then in one without.
func run(t *testing.T, seed *series.Seed) {
	t.Helper()
	w := &world{t: t, seed: seed, calm: make(chan struct{}), arrived: make(chan string), building: map[string]bool{}, all: versions(seed.Number)}
	w.version = w.all[0]
	w.judge = newJudge(w)
	w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: seed.Number, Tick: tick, Committed: w.judge.committed})
	defer w.cluster.Close()
	w.network = &stage.Network{Cluster: w.cluster, Servers: servers, Line: seed.Timeline, Longest: longest}
	w.prepare()
	for i := range launchers {
		w.host(fmt.Sprintf("l%d", i+1))
	}
	for i := range requestors {
		w.zuuls = append(w.zuuls, w.request(fmt.Sprintf("z%d", i+1)))
	}
	for f := range seed.Faults(gap, seed.Part(day+night)) {
		if w.isNight() && f.Rand.IntN(quiet) > 0 {
			continue
		}
		w.rng, w.network.Rand = f.Rand, f.Rand
		w.fault()
	}
	w.heal()
	w.settle()
	for _, p := range w.running() {
		p.stop()
	}
	w.ends.Wait()
	w.looker.Close()
	w.hand.Close()
	for kind, n := range w.clouds.Met() {
		for range n {
			w.judge.Count("cloud call " + kind)
		}
	}
	seed.Lived((launchers + requestors) * seed.Age())
}

// isNight reports whether there is little to do.
func (w *world) isNight() bool { return w.seed.Age() > w.seed.Part(day) }

// byNight begins the name of what is counted for the night alone, too.
const byNight = "by night: "

// count counts something, and for the night if it is one.
func (w *world) count(what string) {
	w.judge.Count(what)
	if w.isNight() {
		w.judge.Count(byNight + what)
	}
}

// prepare makes what launchers find: clouds, with what others have made there, and images.
func (w *world) prepare() {
	dial := func(name string) *recipe.Client {
		client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(name)})
		if err != nil {
			w.t.Fatal(err)
		}
		return client
	}
	w.looker, w.hand = dial(operator), dial(hand)
	session, err := w.looker.Session(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = zkmodel.NewStore(session, nil)
	if w.site, err = w.store.SiteID(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.openClouds()
	w.provide()
}

// heal ends all faults; what has crashed is there again.
func (w *world) heal() {
	w.disarm()
	var machines []*stage.Machine
	for _, p := range w.running() {
		machines = append(machines, p.Machine)
	}
	for _, z := range w.zuuls {
		machines = append(machines, z.Machine)
	}
	w.network.Heal(machines...)
	for _, name := range names {
		w.clouds.Heal(name)
	}
	w.others.Wait()
	w.provide()
	for _, r := range w.spoilt { // a restored tree may have some again
		w.mend(r)
	}
	for _, r := range w.edited {
		w.putRight(r, true)
	}
	for _, p := range w.running() {
		if p.isDead() {
			w.again(p)
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
