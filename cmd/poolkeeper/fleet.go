package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// ofFleet tells whether the configuration is the one that was pushed to the fleet.
func (a *app) ofFleet() bool { return a.flags.Config == fleet.Source }

// hostConfig is what must be known to reach ZooKeeper: the host's own file, or, where the
// configuration is a file, all of that.
func (a *app) hostConfig() (*configs.Config, error) {
	if !a.ofFleet() {
		return a.keepSecret(configs.Load(a.flags.Config, configs.Options{SecurePath: a.flags.Secure, Keyless: true}))
	}
	return a.keepSecret(configs.LoadHost(configs.Options{SecurePath: a.flags.Secure, HostPath: a.flags.HostConfig}))
}

// signers are the keys of those who may push, as the secure file lists them now.
func (a *app) signers() ([]ed25519.PublicKey, error) {
	if a.flags.Secure == "" {
		return nil, nil
	}
	return configs.Signers(a.flags.Secure)
}

// fleetConfig is the configuration of the fleet, as it is to run here: the version that is
// offered, or, where that cannot be used, the last good one.
func (a *app) fleetConfig(ctx context.Context) (*configs.Config, error) {
	k, err := a.offeredVersion(ctx)
	if err != nil {
		return nil, err
	}
	running := a.fleet.Running()
	fresh := running == nil || running.Version.ID() != k.Version.ID()
	cfg, err := a.loadVersion(k)
	if err == nil || !fresh {
		return cfg, err
	}
	a.fleet.Done(err)
	if k = a.fleet.Running(); k == nil {
		return nil, err
	}
	return a.loadVersion(k)
}

// offeredVersion is the version that is to be tried here.
func (a *app) offeredVersion(ctx context.Context) (*fleet.Kept, error) {
	if a.fleet == nil {
		if err := a.fetchFleet(ctx); err != nil {
			return nil, err
		}
	}
	k, _ := a.fleet.Pick()
	if k == nil {
		return nil, errors.New("the configuration in ZooKeeper cannot be used: " + cmp.Or(a.fleet.Self().Reason, "it is not known yet"))
	}
	return k, nil
}

// loadVersion loads a version as this host has it.
func (a *app) loadVersion(k *fleet.Kept) (*configs.Config, error) {
	return a.keepSecret(configs.Load(k.Version.Name(),
		configs.Options{SecurePath: a.flags.Secure, HostPath: a.flags.HostConfig, Text: k.Text}))
}

// configured says what came of the configuration that was loaded last.
func (a *app) configured(err error) {
	if a.fleet != nil {
		a.fleet.Done(err)
	}
}

// fetchFleet reads for a command what is to run.
func (a *app) fetchFleet(ctx context.Context) error {
	host, err := a.hostConfig()
	if err != nil {
		return err
	}
	return a.reaching(ctx, host.ZooKeeper, func(ctx context.Context, _ *recipe.Client, s *recipe.Session) error {
		agent := fleet.NewAgent("", "", "", a.signers, hclog.NewNullLogger())
		if err := a.newestKnown(ctx, agent, host, fleet.NewStore(s)); err != nil {
			return err
		}
		offer, err := fleet.NewStore(s).Offer(ctx, agent.Wanted)
		if err == nil {
			agent.Offered(offer)
			a.fleet = agent
		}
		return err
	})
}

// newestKnown has an agent of a command take nothing that is older than what a daemon of this
// host has run, as far as the command may read that, or than what the history has signed: who
// can write to the tree could offer it.
func (a *app) newestKnown(ctx context.Context, agent *fleet.Agent, host *configs.Config, store *fleet.Store) error {
	keys, err := a.signers()
	if err != nil {
		return err
	}
	for _, kind := range []string{"builder", "launcher"} {
		if k, _ := fleet.LoadKept(keptFile(host, kind), keys); k != nil { // its number counts whatever else is wrong with it
			agent.Above(k.Version)
		}
	}
	all, err := store.History(ctx)
	if recipe.Unreadable(err) {
		return nil
	}
	for _, e := range all {
		if e.Version != nil && e.Version.Verify(keys) == nil {
			agent.Above(e.Version)
		}
	}
	return err
}

// keptFile is where the last good version of a kind of daemon is kept.
func keptFile(host *configs.Config, kind string) string {
	return filepath.Join(host.FleetDir, "fleet-"+kind+".json")
}

// offerWait is how long a daemon that has a version on disk waits at its start for what
// ZooKeeper has.
const offerWait = 10 * time.Second

// serveFleet runs a daemon with the configuration of the fleet until ctx ends. It waits
// for one where there is none.
func (a *app) serveFleet(ctx context.Context, kind string, run func(context.Context, site) error) error {
	host, err := a.hostConfig()
	if err != nil {
		return configError{err}
	}
	log := a.logger(hclog.Info)
	for _, warning := range host.Warnings {
		log.Warn("Configuration", "finding", warning)
	}
	client, err := dial(host.ZooKeeper, log) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	_, name, err := hostnames(ctx)
	if err != nil {
		return err
	}
	a.fleet = fleet.NewAgent(kind, name, keptFile(host, kind), a.signers, log)
	a.fleet.Recall()
	beside, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	pushed := a.followFleet(beside, &group, client, log)
	gate := fleet.NewGate(kind+" on "+name, a.fleet, log)
	group.Go(func() { _ = gate.Run(beside, client) }) // it ends with ctx or the client
	cfg := a.firstVersion(ctx, log, pushed)
	if cfg == nil {
		return nil // it was told to stop
	}
	return run(ctx, site{cfg: cfg, client: client, log: log, pushed: pushed, fleet: a.fleet, gate: gate})
}

// followFleet has the agent know what is pushed, and others what it runs, until ctx ends.
// The channel receives when there is something new.
func (a *app) followFleet(ctx context.Context, group *sync.WaitGroup, client *recipe.Client, log hclog.Logger) <-chan struct{} {
	pushed := make(chan struct{}, 1)
	group.Go(func() {
		_ = fleet.Follow(ctx, client, a.fleet, func() { // it ends with ctx or the client
			select {
			case pushed <- struct{}{}:
			default: // it is told already
			}
		}, func(err error) {
			log.Warn("Cannot read the configuration in ZooKeeper; it is tried again", "error", err)
		})
	})
	presence := fleet.NewPresence(client, a.fleet.Self())
	a.fleet.Announce(presence.Set)
	group.Go(func() { _ = presence.Run(ctx) }) // as above
	return pushed
}

// firstVersion is the configuration to begin with; nil when ctx ends before there is one.
func (a *app) firstVersion(ctx context.Context, log hclog.Logger, pushed <-chan struct{}) *configs.Config {
	late := time.NewTimer(offerWait)
	defer late.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pushed:
		case <-late.C:
		case <-tick.C:
			notify(site{log: log}, extend+"\n"+status("Waits for a configuration to be pushed"))
			if !a.fleet.Fresh() { // or the host's own files are mended
				continue
			}
		}
		cfg, err := a.fleetConfig(ctx)
		if err == nil {
			a.configured(nil)
			return cfg
		}
		if told != err.Error() {
			told = err.Error()
			log.Warn("There is no configuration that can be used; the daemon begins when one is pushed", "error", err)
		}
	}
}

// fleetMetrics tell which version runs.
type fleetMetrics struct{ agent *fleet.Agent }

var (
	fleetVersionDesc = prometheus.NewDesc("poolkeeper_fleet_version",
		"Number of the version of the fleet's configuration that runs.", nil, nil)
	fleetRefusedDesc = prometheus.NewDesc("poolkeeper_fleet_refused",
		"1 while what ZooKeeper has as the fleet's configuration is not taken, else 0.", nil, nil)
)

// Describe is prometheus.Collector's.
func (fleetMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- fleetVersionDesc
	out <- fleetRefusedDesc
}

// Collect is prometheus.Collector's.
func (m fleetMetrics) Collect(out chan<- prometheus.Metric) {
	self := m.agent.Self()
	refused := 0.0
	if self.Reason != "" {
		refused = 1
	}
	out <- prometheus.MustNewConstMetric(fleetVersionDesc, prometheus.GaugeValue, float64(self.Number))
	out <- prometheus.MustNewConstMetric(fleetRefusedDesc, prometheus.GaugeValue, refused)
}
