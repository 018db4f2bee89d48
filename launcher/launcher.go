package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/configs/redact"
	"poolkeeper/configs/statsd"
	"poolkeeper/launcher/backing"
	"poolkeeper/launcher/metrics"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/presence"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/shared"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/launcher/validate"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// lookLimit is how long one look at everything may take before we call it stuck, beside the session time-out, for
// which an outage of ZooKeeper can block it.
const lookLimit = 30 * time.Second

// Deps is what a Launcher is given. Client and Open are required.
type Deps struct {
	// Client reaches ZooKeeper. The launcher does not close it.
	Client *recipe.Client
	// Open opens a configured provider. It is tried again after an error.
	Open func(configs.Provider) (providers.Provider, error)
	// Logger may be nil.
	Logger hclog.Logger
	// Registerer takes the metrics; nil keeps them to ourselves.
	Registerer prometheus.Registerer
	// Statsd is sent Nodepool's figures; nil is sent nothing.
	Statsd *statsd.Client
	// Tracer is told where the time of requests goes; nil is told nothing.
	Tracer *trace.Tracer
	// Now is the clock of records and ages; nil is that of Client.
	Now func() time.Time
	// Hostname is the short name of this host, FQDN the full one; the tree
	// shows them in the component records and in the launcher ids.
	Hostname, FQDN string
	// Version is that of the program, for the component records.
	Version string
	// Resync is how often everything is looked at although nothing has changed,
	// and the clouds are searched for leaked machines; 0 is a minute.
	Resync time.Duration
	// Deciding, when set, is called before each look at requests and nodes, and done when what
	// follows from it is written or begun: a fleet's configuration is switched between two of
	// them. It returns when ctx ends.
	Deciding func(ctx context.Context) (done func())
	// Mirror follows the tree and is run by the caller; nil makes one of our own.
	Mirror *zkmodel.Mirror
	// Process is told what this launcher does for all; nil makes one of our own.
	Process *zkmodel.Process
	// Kept is its record among the components, which the caller holds; nil makes one of our own.
	Kept *presence.Kept
	// Secrets are values that no reason for people may have; nil knows none.
	Secrets *redact.Secrets
	// Check runs the checks of an upload that is tried; nil does so over SSH.
	Check validate.Runner
	// Step, when set, is called at every step; for tests that crash there.
	Step func(step.Step)
}

// Launcher serves node requests from the pools of one configuration.
type Launcher struct {
	cfg      *configs.Config
	deps     Deps
	log      hclog.Logger
	now      func() time.Time
	metrics  *metrics.Metrics
	mirror   *zkmodel.Mirror
	member   string // of this launcher, among all: for the duties
	clouds   map[string]*supply.Provider
	pools    []*pool.Pool
	self     *presence.Self       // what the tree tells of it
	attends  *presence.Attendance // how much of the time it serves
	limits   *shared.Limits
	refusals *shared.Refusals
	offers   *shared.Offers
	backing  map[string]*backing.Folder // by provider whose nodes are slots on others
	clock    shared.Clock
	scanner  *node.Scanner
	boots    *node.Boots
	wake     chan struct{}
	troubles *troubles
	last     atomic.Pointer[[]schedule.Decision]
	tells    struct{ nodes, requests recipe.Throttle } // of what we may not change
	inHand   atomic.Pointer[string]                    // see InHand; nil while that is not known
	looking  atomic.Int64                              // by when the look in progress must end, in ns; 0 when there is none
}

// New checks what it is given and makes a Launcher. Nothing happens before Run.
func New(cfg *configs.Config, deps Deps) (*Launcher, error) {
	if cfg == nil || deps.Client == nil || deps.Open == nil {
		return nil, errors.New("make launcher: configuration, client and providers are required")
	}
	if deps.Logger == nil {
		deps.Logger = hclog.NewNullLogger()
	}
	if deps.Now == nil {
		deps.Now = deps.Client.Clock().Now
	}
	if deps.Resync == 0 {
		deps.Resync = time.Minute
	}
	if deps.Process == nil {
		deps.Process = zkmodel.NewProcess(deps.Now)
	}
	if deps.Deciding == nil {
		deps.Deciding = func(context.Context) func() { return func() {} }
	}
	if deps.FQDN == "" {
		deps.FQDN = deps.Hostname
	}
	figures, err := metrics.New(deps.Registerer, deps.Statsd)
	if err != nil {
		return nil, fmt.Errorf("make launcher: %w", err)
	}
	l := &Launcher{
		cfg: cfg, deps: deps, log: deps.Logger.Named("launcher"), now: deps.Now,
		metrics: figures,
		limits:  shared.NewLimits(deps.Client, deps.Logger), refusals: shared.NewRefusals(deps.Client, deps.Logger), offers: shared.NewOffers(deps.Client, deps.Logger),
		scanner: node.NewScanner(), boots: node.NewBoots(),
		wake: make(chan struct{}, 1), clouds: map[string]*supply.Provider{}, member: deps.FQDN + "-" + kit.RandomHex(16),
		backing: map[string]*backing.Folder{},
	}
	l.tells.nodes.Clock, l.tells.requests.Clock = deps.Client.Clock(), deps.Client.Clock()
	if l.mirror = deps.Mirror; l.mirror == nil {
		l.mirror = newMirror(deps)
	}
	if cfg.HasCanary() {
		l.mirror.FollowCanaries()
	}
	l.troubles = &troubles{client: deps.Client, clouds: l.clouds, again: make(chan struct{}, 1), told: map[string]string{}}
	opened := registry.New(deps.Open, registry.Events{Told: func(provider string, trouble error) { l.clouds[provider].Told(trouble) }})
	for _, p := range cfg.Providers {
		l.clouds[p.Name] = supply.New(p, opened, l.log.With("provider", p.Name), l.now, func() {
			l.notify()
			l.troubles.look()
		})
		if p.BackingLabels() != nil {
			l.backing[p.Name] = backing.NewFolder(deps.Client, p.Name, deps.Logger)
		}
		for _, section := range p.Pools {
			one := pool.New(deps.FQDN, p, section)
			one.Freeze(cfg)
			l.pools = append(l.pools, one)
		}
	}
	host := presence.Host{Name: deps.Hostname, Version: deps.Version}
	l.self = presence.NewSelf(host, zkmodel.Served(cfg.ProviderNames()), knows(cfg), deps.Process, l.pools, presence.Records(deps.Client, host, deps.Kept), l.now, l.log)
	l.attends = presence.NewAttendance(l.log)
	figures.Tell(l.shown(opened.Known)) // complete: it may be scraped at any time
	return l, nil
}

// knows is what a launcher heeds that Nodepool's does not.
func knows(cfg *configs.Config) zkmodel.Strings {
	all := zkmodel.Strings{zkmodel.KnowsVerdicts, zkmodel.KnowsValidation}
	if cfg.HasCanary() {
		all = append(all, zkmodel.KnowsCanaries)
	}
	for _, image := range cfg.DiskImages {
		if image.Canary != nil {
			all = append(all, zkmodel.KnowsCanaryOf(image.Name))
		}
	}
	return all
}

// shown is what the gauges see of it.
func (l *Launcher) shown(known func() map[string]registry.Knowledge) *metrics.Source {
	usable, looks := map[string]func() bool{}, map[string]func() metrics.Cloud{}
	for name, c := range l.clouds {
		usable[name] = c.Usable
		looks[name] = func() metrics.Cloud {
			v := c.View()
			return metrics.Cloud{Limits: v.Limits, Needs: v.Needs, Failures: v.Taught.Lesson.Failures}
		}
	}
	slots := map[string]func() metrics.Backing{}
	for name, folder := range l.backing {
		slots[name] = func() metrics.Backing {
			there, wanted, slots, used := folder.Counts()
			return metrics.Backing{Nodes: there, Wanted: wanted, Slots: slots, Used: used}
		}
	}
	return &metrics.Source{
		Backing: slots,
		Config:  l.cfg, Pools: l.pools, Tree: l.mirror, Image: l.mirror.Image, Complete: l.Ready, Usable: usable,
		Elected: l.elected, Clouds: looks, Known: known, Decisions: l.Decisions, Stocked: l.stocked(), Now: func() time.Time { return l.now().Add(l.ahead()) },
	}
}

// elected reports whether this launcher's figures of the tree are those that count.
func (l *Launcher) elected() bool {
	_, leads := l.deps.Process.Held()[zkmodel.ShareName(zkmodel.TidyElectionPath)]
	return leads
}

// newMirror follows what a launcher looks at.
func newMirror(deps Deps) *zkmodel.Mirror {
	log := deps.Logger
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return zkmodel.NewMirror(deps.Client,
		zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartRequests|zkmodel.PartComponents, log.Named("mirror"))
}

// Run serves requests until ctx ends, over as many sessions as that takes. It
// returns nil when ctx has ended.
func (l *Launcher) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(clock.With(ctx, l.deps.Client.Clock()))
	if l.deps.Mirror == nil {
		group.Go(func() error { return l.mirror.Run(ctx) })
	}
	limited := map[string]shared.Limited{}
	for name, c := range l.clouds {
		limited[name] = c
		group.Go(func() error { c.Run(ctx); return nil })
	}
	group.Go(func() error { return l.limits.Run(ctx, limited) })
	group.Go(func() error { return l.refusals.Run(ctx, l.notify) })
	for _, folder := range l.backing {
		group.Go(func() error { return folder.Run(ctx) })
	}
	group.Go(func() error { l.attends.Watch(ctx); return nil })
	group.Go(func() error { return l.offers.Run(ctx, l.notify) })
	group.Go(func() error { return l.runDuties(ctx) })
	group.Go(func() error { return l.troubles.run(ctx) })
	group.Go(func() error { l.metrics.RunStats(ctx); return nil })
	group.Go(func() error {
		return l.self.Run(ctx, func(ctx context.Context) error { return l.deps.Client.Serve(ctx, l.serve) })
	})
	err := group.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// Decisions are those of the last look at the requests, with their reasons.
func (l *Launcher) Decisions() []schedule.Decision {
	if d := l.last.Load(); d != nil {
		return *d
	}
	return nil
}

// Ready is nil while requests are served, or says why not.
func (l *Launcher) Ready() error {
	if !l.attends.Serving() {
		return errors.New("launcher waits for ZooKeeper")
	}
	for _, path := range []string{zkmodel.RequestsRoot, zkmodel.NodesRoot, zkmodel.ComponentsRoot} {
		if err := l.mirror.Listed(path); err != nil {
			return fmt.Errorf("launcher does not see the tree: %w", err)
		}
	}
	return nil
}

// InHand says what a paused launcher still works at, "" is nothing, and whether that is known.
func (l *Launcher) InHand() (what string, known bool) {
	if !l.attends.Serving() {
		return "", true // what it had is others' to take
	}
	if now := l.inHand.Load(); now != nil {
		return *now, true
	}
	return "", false
}

// Tree is the launcher's view of images, nodes, requests and components, for
// those who show it.
func (l *Launcher) Tree() *zkmodel.Mirror { return l.mirror }

// Requests are those of the tree, for people to look at: one that waits has as its
// reason why, in the words of this launcher's last look at it.
func (l *Launcher) Requests() []*zkmodel.Request {
	return schedule.Explain(l.mirror.Requests(), l.Decisions(), func(r *zkmodel.Request) bool {
		return slices.ContainsFunc(l.pools, func(p *pool.Pool) bool { return r.DeclinedByPool(p.ID) })
	})
}

// Check asks for a sign of life: a launcher that serves must have begun a look
// lately, or be waiting for a reason to.
func (l *Launcher) Check(context.Context) error {
	if limit := l.looking.Load(); limit != 0 {
		if late := l.now().Sub(time.Unix(0, limit)); late > 0 {
			return fmt.Errorf("check launcher: a look at the tree should have ended %s ago", late)
		}
	}
	return nil
}

// notify makes the launcher look at everything again. It never blocks.
func (l *Launcher) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ahead is how far ZooKeeper's clock is ahead of ours.
func (l *Launcher) ahead() time.Duration { return l.clock.Ahead() }

// step tells a test where we are.
func (l *Launcher) step(at step.Step) {
	if l.deps.Step != nil {
		l.deps.Step(at)
	}
}

// serve is the work of one session. When it returns, its locks are given up.
func (l *Launcher) serve(ctx context.Context, s *recipe.Session) error {
	session := newSession(l, zkmodel.NewStore(s, l.now))
	return session.run(ctx)
}
