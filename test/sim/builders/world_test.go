package builders

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What a simulation is like.
const (
	hosts          = 3
	length         = 2 * time.Hour
	gap            = 2 * time.Minute // between two faults
	servers        = 3
	sessionTimeout = 20 * time.Second
	tick           = time.Second
	longest        = 3 * sessionTimeout // how long a fault of networks and hosts lasts
)

var logs = flag.Bool("sim.logs", false, "have what builders log in the timeline")

// world is one simulation.
type world struct {
	t       *testing.T
	seed    *series.Seed
	rng     *rand.Rand // of the fault that is made
	cluster *zookeeper.Cluster
	network *stage.Network
	judge   *judge
	clouds  *cloud.Cloud
	hosts   []*site
	looker  *recipe.Client // an operator's; no fault meets it but those of servers
	hand    *recipe.Client // of people with editors; none meets it, either
	others  sync.WaitGroup // what goes on beside
	folder  string         // of the hosts' files

	siteID string // of this installation

	mu      sync.Mutex
	backup  *zookeeper.Snapshot
	spoilt  []spoilt // records, by people
	armed   []*armed // faults that wait for a step
	version version
	shut    bool // no builder starts
}

func (w *world) isShut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shut
}

func (w *world) setShut(shut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut = shut
}

// run has builders live in a world of faults for some time, and then in one without.
func run(t *testing.T, seed *series.Seed) {
	t.Helper()
	w := &world{t: t, seed: seed, folder: folder(t)}
	w.judge = newJudge(w)
	w.cluster = zookeeper.New(zookeeper.Options{Servers: servers, Seed: seed.Number, Tick: tick, MaxTimeout: time.Minute, Committed: w.judge.committed})
	defer w.cluster.Close()
	w.clouds = cloud.New(cloud.Options{Seed: seed.Number, Told: w.judge.changed})
	w.network = &stage.Network{Cluster: w.cluster, Servers: servers, Line: seed.Timeline, Longest: longest}
	w.prepare()
	for n := range hosts {
		w.hosts = append(w.hosts, w.host(n+1))
		w.start(w.hosts[n])
	}
	for f := range seed.Faults(gap, seed.Part(length)) {
		w.rng, w.network.Rand = f.Rand, f.Rand
		w.fault(f)
	}
	w.heal()
	w.settle()
	for _, s := range w.hosts {
		s.running().stop()
	}
	w.looker.Close()
	w.hand.Close()
	w.judge.counts(w)
	seed.Lived(hosts * seed.Age())
}

// folder is one for files, in memory if there is a place: hosts are looked at each minute.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "builders") //nolint:usetesting // see above
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// dial makes the client of people. One that has seen more than the servers have is sent away: there is a
// new one when they have gone back in time.
func (w *world) dial() {
	client, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(operator)})
	if err != nil {
		w.t.Fatal(err)
	}
	editor, err := recipe.Dial(recipe.Config{Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(hand)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looker, w.hand = client, editor
}

// patient is how long an operator waits for a command: what has the lock may hang until faults end.
const patient = 10 * time.Minute

// operate has an operator do something, as a command does: in the session of the moment, since servers
// that have no leader for long end one. While there is none it waits for the next.
func (w *world) operate(do func(ctx context.Context, store *zkmodel.Store) error) error {
	w.mu.Lock()
	client := w.looker
	w.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(w.t.Context()), patient)
	defer stop()
	session, err := client.Session(ctx)
	if err != nil {
		return err
	}
	return do(ctx, zkmodel.NewStore(session, nil))
}

// insist has an operator do again what has failed, until it is done.
func (w *world) insist(what string, do func(ctx context.Context, store *zkmodel.Store) error) {
	var err error
	for range 100 {
		if err = w.operate(do); err == nil {
			return
		}
		wait(time.Second)
	}
	w.judge.Wrong("world", "an operator cannot %s: %v", what, err)
}

// prepare makes what builders find: clouds, with what others have made there.
func (w *world) prepare() {
	w.dial()
	if err := w.operate(func(ctx context.Context, store *zkmodel.Store) (err error) {
		w.siteID, err = store.SiteID(ctx)
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	for _, name := range clouds {
		w.clouds.PlantImage(name, "of another installation", map[string]string{
			providers.MetaProvider: name, providers.MetaSite: "another", providers.MetaImage: "debian",
			providers.MetaBuild: "0000000000", providers.MetaUpload: "0000000000",
		})
		w.clouds.PlantImage(name, "of a person", map[string]string{"owner": "a person"})
		w.clouds.PlantImage(name, "of Nodepool", map[string]string{
			providers.MetaProvider: name, providers.MetaBuild: "0000000001", providers.MetaUpload: "0000000001",
		})
	}
}

func (w *world) current() version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version
}

// reload has all builders go on with a version.
func (w *world) reload(v version) {
	w.mu.Lock()
	w.version = v
	w.mu.Unlock()
	for _, s := range w.hosts {
		if p := s.running(); p != nil {
			if err := p.builder.Reload(v.load(w.t, s.folder)); err != nil {
				w.t.Fatal(err)
			}
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
