package builders

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs/clock"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/test/sim/dib"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel/recipe"
)

// site is one host, with its files; it goes on when the builder on it dies.
type site struct {
	*dib.Host
	name, folder string

	mu      sync.Mutex
	process *process // nil while none runs
	runs    int
}

// process is a builder's: what runs on one host from its start to its end.
type process struct {
	*stage.Machine
	world   *world
	site    *site
	cloud   *cloud.Agent
	daemon  *dib.Daemon
	client  *recipe.Client
	builder *builder.Builder
	cancel  context.CancelFunc
	done    chan struct{}
	started time.Duration // age of the world

	mu   sync.Mutex
	dead bool
}

// upSince is for each host since when its builder runs; one that runs none begins now.
func (w *world) upSince() map[string]time.Duration {
	up := map[string]time.Duration{}
	for _, s := range w.hosts {
		up[s.name] = w.judge.Age()
		if p := s.running(); p != nil {
			up[s.name] = p.started
		}
	}
	return up
}

// policy is the usual one, of shorter patience: what must come in the end must come soon.
func policy() plan.Policy {
	p := plan.DefaultPolicy()
	p.BuildRetry.Max, p.UploadRetry.Max = 8*time.Minute, 4*time.Minute
	return p
}

// host makes the number-th host.
func (w *world) host(number int) *site {
	name := fmt.Sprintf("b%d", number)
	s := &site{name: name, folder: filepath.Join(w.folder, name)}
	s.Host = dib.NewHost(name, dib.Options{Seed: w.seed.Number ^ uint64(number)<<32, Folder: s.folder, Told: w.judge.built})
	return s
}

// start begins a builder on a host.
func (w *world) start(s *site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return
	}
	s.runs++
	name := fmt.Sprintf("%s.%d", s.name, s.runs)
	// What a fault draws must not depend on how often a host was started.
	rng := w.seed.Rand(uint64(s.name[1])<<16 + uint64(s.runs))
	p := &process{Machine: stage.NewMachine(name, rng), world: w, site: s, done: make(chan struct{}), started: w.judge.Age()}
	p.cloud, p.daemon = w.clouds.Agent(name), s.Daemon(p.Awake)
	client, err := recipe.Dial(recipe.Config{
		Servers: w.cluster.Addrs(), Timeout: sessionTimeout, MaxPacket: stage.MaxPacket, Dial: w.cluster.Dialer(name), Clock: clock.From(p),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	p.client = client
	p.builder, err = builder.New(w.current().load(w.t, s.folder), builder.Deps{
		Client: client, Open: p.cloud.Open, Hostname: s.name, FQDN: s.name + ".example.org", Version: "simulated", Arch: "amd64",
		Host: p.daemon, Environ: []string{}, Policy: policy(), Logger: w.logger(name), Step: p.step,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	p.cancel = cancel
	w.judge.Note(name, "starts")
	go func() {
		defer close(p.done)
		if err := p.builder.Run(ctx); err != nil && ctx.Err() == nil {
			w.judge.Note(name, "ended by itself: %v", err)
			w.judge.Count("ended by itself")
		}
	}()
	s.process = p
}

// running is what runs on a host, nil for nothing.
func (s *site) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// stop ends a process as SIGTERM does, and waits for that.
func (p *process) stop() {
	p.cancel()
	<-p.done
	p.client.Close()
}

// crash ends a process: nothing that it does from now on reaches anybody. Its host starts another,
// after a while.
func (p *process) crash(why string, after time.Duration) {
	p.mu.Lock()
	dead := p.dead
	p.dead = true
	p.mu.Unlock()
	if dead {
		return
	}
	w := p.world
	w.judge.Fault("crash", p.Name, "%s", why)
	w.cluster.Break(p.Name)
	w.cluster.Cut(p.Name)
	p.cloud.Crash()
	err := p.site.Snapshot()
	p.daemon.Crash()
	w.others.Go(func() {
		p.Resume() // its timers may fire: no effect leaves it
		p.stop()
		wait(after)
		if err == nil {
			err = p.site.Restore()
		}
		if err != nil {
			w.judge.Wrong("world", "the files of %s: %v", p.Name, err)
		}
		w.again(p)
	})
}

// restart ends a process in good order, and starts another.
func (p *process) restart(after time.Duration) {
	p.mu.Lock()
	dead := p.dead
	p.dead = true
	p.mu.Unlock()
	if dead {
		return
	}
	w := p.world
	w.judge.Fault("stop", p.Name, "")
	w.others.Go(func() {
		p.Awake()
		p.stop()
		wait(after)
		w.again(p)
	})
}

// again has a host start its program again.
func (w *world) again(p *process) {
	p.site.mu.Lock()
	p.site.process = nil
	p.site.mu.Unlock()
	for w.isShut() {
		wait(time.Second)
	}
	w.start(p.site)
}

// justResumed reports whether a process is, or was a moment ago, paused.
func (w *world) justResumed(name string) bool {
	return slices.ContainsFunc(w.hosts, func(s *site) bool {
		p := s.running()
		return p != nil && p.Name == name && p.JustResumed()
	})
}

// isDead reports whether it was ended.
func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// step is told of the builder's steps. What waits for one happens there.
func (p *process) step(s step.Step) {
	if p.isDead() {
		return
	}
	j := p.world.judge
	j.Count("at " + string(s))
	a := p.world.reached(s)
	if a == nil {
		return
	}
	j.Note(p.Name, "%s, as armed, at %s", a.fault, s)
	j.Count(a.fault + " while: " + s.Of())
	if a.fault == "crash" {
		j.Count("crash at " + string(s))
	}
	p.world.strike(p, a.fault, "at "+string(s), a.rng)
}

// hold stops a process for a while: its clock, its network and its calls to clouds.
func (p *process) hold(d time.Duration) {
	w := p.world
	w.judge.Fault("pause", p.Name, "for %s", d)
	p.Pause()
	p.cloud.Pause()
	w.cluster.Cut(p.Name)
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		w.judge.Note(p.Name, "goes on")
		p.Resume()
		p.cloud.Resume()
		if !p.dead {
			w.cluster.Heal(p.Name)
		}
	})
}

// wait lets time pass in the world.
func wait(d time.Duration) { <-time.After(d) }

// upTo draws a time.
func upTo(d time.Duration, rng *rand.Rand) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
