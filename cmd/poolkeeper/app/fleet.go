package app

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// OfFleet tells whether the configuration is the one that was pushed to the fleet.
func (a *App) OfFleet() bool { return a.Flags.Config == fleet.Source }

// HostConfig is what must be known to reach ZooKeeper: the host's own file, or, where the
// configuration is a file, all of that.
func (a *App) HostConfig() (*configs.Config, error) {
	if !a.OfFleet() {
		return a.load(configs.Options{SecurePath: a.Flags.Secure, Keyless: true})
	}
	return a.KeepSecret(configs.LoadHost(configs.Options{SecurePath: a.Flags.Secure, HostPath: a.Flags.HostConfig}))
}

// Signers are the keys of those who may push, as the secure file lists them now.
func (a *App) Signers() ([]ed25519.PublicKey, error) {
	if a.Flags.Secure == "" {
		return nil, nil
	}
	return configs.Signers(a.Flags.Secure)
}

// FleetConfig is the configuration of the fleet, as it is to run here: the version that is
// offered, or, where that cannot be used, the last good one.
func (a *App) FleetConfig(ctx context.Context) (*configs.Config, error) {
	k, err := a.OfferedVersion(ctx)
	if err != nil {
		return nil, err
	}
	running := a.Fleet.Running()
	fresh := running == nil || running.Version.ID() != k.Version.ID()
	cfg, err := a.loadVersion(k)
	if err == nil || !fresh {
		return cfg, err
	}
	a.Fleet.Done(err)
	if k = a.Fleet.Running(); k == nil {
		return nil, err
	}
	return a.loadVersion(k)
}

// OfferedVersion is the version that is to be tried here.
func (a *App) OfferedVersion(ctx context.Context) (*fleet.Kept, error) {
	if a.Fleet == nil {
		if err := a.fetchFleet(ctx); err != nil {
			return nil, err
		}
	}
	k, _ := a.Fleet.Pick()
	if k == nil {
		return nil, errors.New("the configuration in ZooKeeper cannot be used: " + cmp.Or(a.Fleet.Self().Reason, "it is not known yet"))
	}
	return k, nil
}

// loadVersion loads a version as this host has it.
func (a *App) loadVersion(k *fleet.Kept) (*configs.Config, error) {
	return a.KeepSecret(configs.Load(k.Version.Name(),
		configs.Options{SecurePath: a.Flags.Secure, HostPath: a.Flags.HostConfig, Text: k.Text}))
}

// Configured says what came of the configuration that was loaded last.
func (a *App) Configured(err error) {
	if a.Fleet != nil {
		a.Fleet.Done(err)
	}
}

// fetchFleet reads for a command what is to run.
func (a *App) fetchFleet(ctx context.Context) error {
	host, err := a.HostConfig()
	if err != nil {
		return err
	}
	return a.Reaching(ctx, host.ZooKeeper, func(ctx context.Context, _ *recipe.Client, s *recipe.Session) error {
		agent := fleet.NewAgent("", "", "", a.Signers, hclog.NewNullLogger())
		if err := a.newestKnown(ctx, agent, host, fleet.NewStore(s)); err != nil {
			return err
		}
		offer, err := fleet.NewStore(s).Offer(ctx, agent.Wanted)
		if err == nil {
			agent.Offered(offer)
			a.Fleet = agent
		}
		return err
	})
}

// newestKnown has an agent of a command take nothing that is older than what a daemon of this
// host has run, as far as the command may read that, or than what the history has signed: who
// can write to the tree could offer it.
func (a *App) newestKnown(ctx context.Context, agent *fleet.Agent, host *configs.Config, store *fleet.Store) error {
	keys, err := a.Signers()
	if err != nil {
		return err
	}
	for _, kind := range []string{"builder", "launcher"} {
		if k, _ := fleet.LoadKept(KeptFile(host, kind), keys); k != nil { // its number counts whatever else is wrong with it
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

// KeptFile is where the last good version of a kind of daemon is kept.
func KeptFile(host *configs.Config, kind string) string {
	return filepath.Join(host.FleetDir, "fleet-"+kind+".json")
}

// FleetMetrics tell which version runs.
type FleetMetrics struct{ Agent *fleet.Agent }

var (
	fleetVersionDesc = prometheus.NewDesc("poolkeeper_fleet_version",
		"Number of the version of the fleet's configuration that runs.", nil, nil)
	fleetRefusedDesc = prometheus.NewDesc("poolkeeper_fleet_refused",
		"1 while what ZooKeeper has as the fleet's configuration is not taken, else 0.", nil, nil)
)

// Describe is prometheus.Collector's.
func (FleetMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- fleetVersionDesc
	out <- fleetRefusedDesc
}

// Collect is prometheus.Collector's.
func (m FleetMetrics) Collect(out chan<- prometheus.Metric) {
	self := m.Agent.Self()
	refused := 0.0
	if self.Reason != "" {
		refused = 1
	}
	out <- prometheus.MustNewConstMetric(fleetVersionDesc, prometheus.GaugeValue, float64(self.Number))
	out <- prometheus.MustNewConstMetric(fleetRefusedDesc, prometheus.GaugeValue, refused)
}
