package site

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/launcher"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel/recipe"
)

// process is a launcher's: what runs on one host from its start to its end.
type process struct {
	*stage.Machine
	world   *world
	host    string // which starts it again
	client  *recipe.Client
	way     *cloud.Agent // to the clouds
	service *launcher.Service
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	version version   // that it works by
	before  []version // that it worked by, until changed
	changed []time.Time
	dead    bool
	calls   map[string]int // under way to clouds, by what they ask for
}

// host makes a host, and starts its launcher.
func (w *world) host(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = append(w.hosts, w.start(name))
}

// running are the processes of all hosts, the last of each.
func (w *world) running() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hosts)
}

// start begins a launcher on a host; w.mu is held.
func (w *world) start(host string) *process {
	w.started++
	rng := w.seed.Rand(uint64(w.started))
	p := &process{
		Machine: stage.NewMachine(fmt.Sprintf("%s.%d", host, w.started), rng), world: w, host: host, version: w.version,
		done: make(chan struct{}),
	}
	client, err := recipe.Dial(recipe.Config{
		Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(p.Name), Clock: clock.From(p), Rand: rand.NewPCG(w.seed.Number, rng.Uint64()),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.client, p.way = client, w.clouds.Agent(p.Name)
	p.service, err = launcher.NewService(w.version.load(w.t), launcher.Deps{
		Client: client, Hostname: host, FQDN: host + ".example.org", Version: "simulated", Logger: w.logger(p.Name), Step: p.step, Deciding: p.looks,
		Open: func(section configs.Provider) (providers.Provider, error) {
			c, err := p.way.Open(section)
			return handle{c, p}, err
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	p.cancel = cancel
	w.judge.born(p)
	go func() {
		defer close(p.done)
		if err := p.service.Run(ctx); err != nil && ctx.Err() == nil {
			w.judge.Note(p.Name, "ended by itself: %v", err)
		}
	}()
	return p
}

// stop ends a process as SIGTERM does, and waits for that.
func (p *process) stop() {
	p.cancel()
	<-p.done
	p.client.Close()
}

// kill ends a process: nothing that it does from now on reaches anybody.
func (p *process) kill(why string) {
	p.mu.Lock()
	dead := p.dead
	p.dead = true
	p.mu.Unlock()
	if dead {
		return
	}
	w := p.world
	if at, is := strings.CutPrefix(why, "at "); is {
		w.judge.Count("crash at " + at)
	}
	p.meets("crash")
	w.judge.Fault("crash", p.Name, "%s", why)
	p.way.Crash()
	w.ends.Go(func() {
		w.cluster.Break(p.Name)
		w.cluster.Cut(p.Name)
		p.Resume() // its timers may fire: no effect leaves it
		p.stop()
	})
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// at is told what a process comes to; it may be its last.
func (p *process) at(point string) {
	p.world.judge.Count("at " + point)
	p.world.come(point, p)
}

// step is told of the launcher's steps.
func (p *process) step(s step.Step) { p.at(string(s)) }

// look is how long a launcher takes to look at the tree: no time passes while it thinks, and
// nothing that comes one after the other would be seen together.
const look = 20 * time.Millisecond

// looks is told before each look.
func (p *process) looks(ctx context.Context) (done func()) {
	_ = clock.Sleep(ctx, look)
	p.world.count("looks")
	return func() {}
}

// pass lets a call, or its answer, pass between the process and a cloud: not while it is paused.
func (p *process) pass(ctx context.Context, point string) error {
	p.at(point)
	p.Awake()
	if p.isDead() {
		return errDead
	}
	return ctx.Err()
}

// begins notes a call to a cloud, until over is called.
func (p *process) begins(call string) (over func()) {
	note := func(n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.calls == nil {
			p.calls = map[string]int{}
		}
		p.calls[call] += n
	}
	note(1)
	if p.world.isNight() {
		p.world.judge.Count(byNight + call)
	}
	p.world.come(call, p)
	return func() { note(-1) }
}

// meets counts a fault at each kind of call that the process has under way.
func (p *process) meets(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for call, n := range p.calls {
		if n > 0 {
			p.world.judge.Count(met(fault, call))
		}
	}
}

// reload has a process go on with another version of the configuration.
func (p *process) reload(v version) {
	cfg := v.load(p.world.t)
	p.mu.Lock()
	p.before, p.changed, p.version = append(p.before, p.version), append(p.changed, time.Now()), v
	p.mu.Unlock()
	if err := p.service.Reload(cfg); err != nil {
		p.world.t.Fatal(err)
	}
}

// wait lets time pass in the world.
func wait(d time.Duration) { <-time.After(d) }

// takeOver is how long what was decided by one configuration may be written by when another is there.
const takeOver = 30 * time.Second

// limits are those that it works by, the widest of all while one takes over from others.
func (p *process) limits() version {
	p.mu.Lock()
	defer p.mu.Unlock()
	widest := version{pools: maps.Clone(p.version.pools), limited: p.version.limited}
	for i, v := range p.before {
		if time.Since(p.changed[i]) > takeOver {
			continue
		}
		for pool, n := range v.pools {
			widest.pools[pool] = max(n, widest.pools[pool])
		}
	}
	return widest
}
