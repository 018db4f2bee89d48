package main

import (
	"context"
	"os"

	"poolkeeper/builder"
	"poolkeeper/builder/dib"
)

// builderCmd runs the builder.
type builderCmd struct {
	daemonFlags
	workers
}

// workers are the flags for how much is done at the same time.
type workers struct {
	BuildWorkers  int `default:"1" placeholder:"N" help:"How many images are built at the same time (${default})."`
	UploadWorkers int `default:"4" placeholder:"N" help:"How many uploads run at the same time (${default})."`
}

// Run is the command.
func (c builderCmd) Run(ctx context.Context, a *app) error {
	return c.serve(ctx, a, "builder", func(s site) (daemon, error) { return newBuilder(ctx, s, c.workers) })
}

// newBuilder makes the daemon.
func newBuilder(ctx context.Context, s site, w workers) (*builder.Builder, error) {
	short, full, err := hostnames(ctx)
	if err != nil {
		return nil, err
	}
	return builder.New(s.cfg, builder.Deps{
		Client: s.client, Open: openProvider(s.log), Logger: s.log,
		Hostname: short, FQDN: full, Version: version,
		BuildWorkers: w.BuildWorkers, UploadWorkers: w.UploadWorkers,
	})
}

// buildGuardCmd is the process between a builder and a build, which ends the
// build when its builder cannot. The builder starts it, nobody else.
type buildGuardCmd struct{}

// Run is the command. It takes signals its own way.
func (buildGuardCmd) Run() error { return dib.Guard(os.Stdin, os.Stdout) }
