package main

import (
	"context"

	"poolkeeper/launcher"
	"poolkeeper/web"
)

// launcherCmd runs the launcher.
type launcherCmd struct {
	daemonFlags
	NoWebapp bool `name:"no-webapp" help:"Serve no status page."`
}

// Run is the command.
func (c launcherCmd) Run(ctx context.Context, a *app) error {
	return c.serve(ctx, a, "launcher", func(s site) (daemon, *web.Server, error) {
		l, err := newLauncher(ctx, s)
		return l, nil, err
	})
}

// newLauncher makes the daemon.
func newLauncher(ctx context.Context, s site) (*launcher.Launcher, error) {
	short, full, err := hostnames(ctx)
	if err != nil {
		return nil, err
	}
	return launcher.New(s.cfg, launcher.Deps{
		Client: s.client, Open: openProvider(s.log), Logger: s.log,
		Hostname: short, FQDN: full, Version: version,
	})
}
