package main

import (
	"context"
	"errors"
)

// builderCmd runs the builder.
type builderCmd struct {
	daemonFlags
	BuildWorkers  int `default:"1" help:"How many images are built at the same time (${default})."`
	UploadWorkers int `default:"4" help:"How many uploads run at the same time (${default})."`
}

// Run is the command.
func (c builderCmd) Run(ctx context.Context, a *app) error {
	return c.serve(ctx, a, "builder", func(s site) (daemon, error) { return newBuilder(ctx, s, c) })
}

// newBuilder makes the daemon.
func newBuilder(context.Context, site, builderCmd) (daemon, error) {
	return nil, errors.New("make builder: not in this version")
}
