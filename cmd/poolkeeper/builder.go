package main

import (
	"context"
	"errors"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"poolkeeper/builder"
	"poolkeeper/builder/dib"
	"poolkeeper/web"
)

// builderCmd runs the builder.
type builderCmd struct {
	daemonFlags
	workers
	DryRun   bool `help:"Print what this builder would do now, and do nothing."`
	NoWebapp bool `name:"no-webapp" help:"Serve neither build logs nor metrics."`
	WebPort  int  `placeholder:"PORT" help:"Port of build logs, status and metrics; by default the one after webapp.port."`
}

// workers are the flags for how much is done at the same time.
type workers struct {
	BuildWorkers  int `default:"1" placeholder:"N" help:"How many images are built at the same time (${default})."`
	UploadWorkers int `default:"4" placeholder:"N" help:"How many uploads run at the same time (${default})."`
}

// Run is the command.
func (c builderCmd) Run(ctx context.Context, a *app) error {
	if c.DryRun {
		return a.dryRun(ctx)
	}
	return c.serve(ctx, a, "builder", func(s site) (daemon, error) {
		if c.NoWebapp {
			return newBuilder(ctx, s, c.workers)
		}
		return c.withWeb(ctx, s)
	})
}

// withWeb makes the daemon together with its web server.
func (c builderCmd) withWeb(ctx context.Context, s site) (daemon, error) {
	port := c.WebPort
	if port == 0 {
		port = s.cfg.WebApp.Port + 1 // the launcher has that one
	}
	_, full, err := hostnames(ctx)
	if err != nil {
		return nil, err
	}
	logs := web.NewLogDir(func(image, build string) string { return dib.LogPath(s.cfg.BuildLogDir, image, build) })
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Builder and server need each other: the server is asked only when both are there.
	var b *builder.Builder
	var server *web.Server
	b, err = newBuilder(ctx, s, c.workers, func(d *builder.Deps) {
		d.Registerer, d.Logs = metrics, logs
		d.LogURL = func(image, build string) string { return server.LogURL(full, image, build) }
	})
	if err != nil {
		return nil, err
	}
	server, err = listen(ctx, s, port, web.Options{
		Daemon: "builder", Host: full, Ready: b.Ready, Gatherer: metrics, Logs: logs,
		Tree: web.Tree{Images: b.Tree().Images, Components: b.Tree().Components, WaitSynced: b.Tree().WaitSynced},
	})
	if err != nil {
		return nil, err
	}
	return servedBuilder{served{b, server}, b}, nil
}

// servedBuilder is a builder with its web server, which can do what a builder can.
type servedBuilder struct {
	served
	*builder.Builder
}

// Run runs both.
func (b servedBuilder) Run(ctx context.Context) error { return b.served.Run(ctx) }

// newBuilder makes the daemon.
func newBuilder(ctx context.Context, s site, w workers, change ...func(*builder.Deps)) (*builder.Builder, error) {
	short, full, err := hostnames(ctx)
	if err != nil {
		return nil, err
	}
	if w.BuildWorkers < 0 || w.UploadWorkers < 0 {
		return nil, errors.New("the number of workers cannot be negative")
	}
	deps := builder.Deps{
		Client: s.client, Open: openProvider(s.log), Logger: s.log,
		Hostname: short, FQDN: full, Version: version,
		BuildWorkers: w.BuildWorkers, UploadWorkers: w.UploadWorkers,
	}
	for _, c := range change {
		c(&deps)
	}
	return builder.New(s.cfg, deps)
}

// buildGuardCmd is the process between a builder and a build, which ends the
// build when its builder cannot. The builder starts it, nobody else.
type buildGuardCmd struct{}

// Run is the command. It takes signals its own way.
func (buildGuardCmd) Run() error { return dib.Guard(os.Stdin, os.Stdout) }
