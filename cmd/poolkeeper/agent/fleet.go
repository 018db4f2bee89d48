package agent

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// offerWait is how long a daemon that has a version on disk waits at its start for what
// ZooKeeper has.
const offerWait = 10 * time.Second

// serveFleet runs a daemon with the configuration of the fleet until ctx ends. It waits
// for one where there is none.
func serveFleet(ctx context.Context, a *app.App, kind string, run func(context.Context, site) error) error {
	host, err := a.HostConfig()
	if err != nil {
		return app.WrongConfig(err)
	}
	log := a.DaemonLogger()
	for _, warning := range host.Warnings {
		log.Warn("Configuration", "finding", warning)
	}
	client, err := app.Dial(host.ZooKeeper, log) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	_, name, err := app.Hostnames(ctx)
	if err != nil {
		return err
	}
	a.Fleet = fleet.NewAgent(kind, name, app.KeptFile(host, kind), a.Signers, log)
	a.Fleet.Recall()
	beside, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	pushed := followFleet(beside, a, &group, client, log)
	gate := fleet.NewGate(kind+" on "+name, a.Fleet, log)
	group.Go(func() { _ = gate.Run(beside, client) }) // it ends with ctx or the client
	cfg := firstVersion(ctx, a, log, pushed)
	if cfg == nil {
		return nil // it was told to stop
	}
	return run(ctx, site{cfg: cfg, client: client, log: log, pushed: pushed, fleet: a.Fleet, gate: gate})
}

// followFleet has the agent know what is pushed, and others what it runs, until ctx ends.
// The channel receives when there is something new.
func followFleet(ctx context.Context, a *app.App, group *sync.WaitGroup, client *recipe.Client, log hclog.Logger) <-chan struct{} {
	pushed := make(chan struct{}, 1)
	group.Go(func() {
		_ = fleet.Follow(ctx, client, a.Fleet, func() { // it ends with ctx or the client
			select {
			case pushed <- struct{}{}:
			default: // it is told already
			}
		}, func(err error) {
			log.Warn("Cannot read the configuration in ZooKeeper; it is tried again", "error", err)
		})
	})
	presence := fleet.NewPresence(client, a.Fleet.Self())
	a.Fleet.Announce(presence.Set)
	group.Go(func() { _ = presence.Run(ctx) }) // as above
	return pushed
}

// firstVersion is the configuration to begin with; nil when ctx ends before there is one.
func firstVersion(ctx context.Context, a *app.App, log hclog.Logger, pushed <-chan struct{}) *configs.Config {
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
			if !a.Fleet.Fresh() { // or the host's own files are mended
				continue
			}
		}
		cfg, err := a.FleetConfig(ctx)
		if err == nil {
			a.Configured(nil)
			return cfg
		}
		if told != err.Error() {
			told = err.Error()
			log.Warn("There is no configuration that can be used; the daemon begins when one is pushed", "error", err)
		}
	}
}
