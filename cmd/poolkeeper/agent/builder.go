package agent

import (
	"context"
	"errors"
	"os"
	"time"

	"poolkeeper/builder"
	"poolkeeper/builder/dib"
	"poolkeeper/builder/plan"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/web"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/observe"
	"poolkeeper/zkmodel/recipe"
)

// BuilderCmd runs the builder.
type BuilderCmd struct {
	daemonFlags
	workers
	webFlags
	Fake bool `hidden:""` // Nodepool's: files are made without diskimage-builder, for tests
}

// workers are the flags for how much is done at the same time.
type workers struct {
	BuildWorkers  int `default:"1" placeholder:"N" help:"How many images are built at the same time (${default})."`
	UploadWorkers int `default:"4" placeholder:"N" help:"How many uploads run at the same time (${default})."`
}

// Run is the command.
func (c BuilderCmd) Run(ctx context.Context, a *app.App) error {
	a.FakeBuilds = c.Fake
	return c.serve(ctx, a, "builder", func(s site) (daemon, *web.Server, error) {
		return servedBuilder(ctx, s, c.workers, func(o web.Options) (*web.Server, error) {
			return c.listen(ctx, s, builderPort, o)
		})
	})
}

// builderPort is how far a builder's port is from the configured one, which is
// the launcher's as it is with Nodepool.
const builderPort = 1

// servedBuilder makes the daemon and, by listen, its web server, which may be nil.
func servedBuilder(ctx context.Context, s site, w workers, listen func(web.Options) (*web.Server, error)) (daemon, *web.Server, error) {
	_, full, err := app.Hostnames(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, warning := range app.ElementWarnings(s.cfg) {
		s.log.Warn("Configuration", "finding", warning)
	}
	// Each needs the other, and asks nothing before Run.
	var b *builder.Builder
	var server *web.Server
	metrics := newMetrics(s)
	logs := buildlog.NewDir(func(image, build string) string { return b.LogPath(image, build) })
	b, err = newBuilder(ctx, s, w, func(d *builder.Deps) {
		d.Registerer, d.Statsd, d.Tracer, d.Logs = metrics, s.statsd, s.tracer, logs
		d.LogURL = func(image, build string) string { return logURL(server, full, image, build) }
	})
	if err != nil {
		return nil, nil, err
	}
	s.observe(b.Tree(), "builder", full, observe.Images)
	if err := tellTree(metrics, s, b.Config, b.Tree()); err != nil {
		return nil, nil, err
	}
	server, err = listen(web.Options{
		Daemon: "builder", Host: full, Ready: b.Ready, Alive: b.Check, Gatherer: metrics, Logs: logs, History: s.record(metrics, b.Tree(), "builder", false), Guarded: s.guarded.texts, Configured: b.HasImage, Config: b.Config, Explain: explainer(s.client, b.Config, full),
		Tree: s.withBeside(web.Tree{
			Images: b.Tree().Images, Components: b.Tree().Components, Validations: b.Tree().Validations, ProviderPauses: b.Tree().ProviderPauses, Watch: b.Tree().Watch,
			WaitSynced: b.Tree().WaitSynced, WaitFor: b.Tree().WaitFor,
		}),
	})
	return b, server, err
}

// explainer says what a builder on this host has to do for an image.
func explainer(client *recipe.Client, config func() *configs.Config, host string) func(context.Context, string) ([]web.Reason, error) {
	return func(ctx context.Context, image string) (list []web.Reason, err error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // of a reader who waits
		defer cancel()
		session, err := client.Session(ctx)
		if err != nil {
			return nil, err
		}
		all, err := builder.Explain(ctx, config(), zkmodel.NewStore(session, nil), host, image)
		for _, e := range all {
			for _, v := range e.Verdicts {
				list = append(list, web.Reason{Subject: v.Subject, Rule: v.Rule, Speaks: v.Speaks, Detail: v.Detail, Outcome: outcome(v)})
			}
		}
		return list, err
	}
}

// outcome is that of a verdict that decides its subject; "" of any other.
func outcome(v plan.Verdict) string {
	if !v.Decides {
		return ""
	}
	return v.Outcome()
}

// logURL is where a build's log can be read; "" without a server.
func logURL(server *web.Server, us, image, build string) string {
	if server == nil {
		return ""
	}
	return server.LogURL(hostOf(server.Addr(), us), image, build)
}

// newBuilder makes the daemon.
func newBuilder(ctx context.Context, s site, w workers, change ...func(*builder.Deps)) (*builder.Builder, error) {
	short, full, err := app.Hostnames(ctx)
	if err != nil {
		return nil, err
	}
	if w.BuildWorkers < 0 || w.UploadWorkers < 0 {
		return nil, errors.New("the number of workers cannot be negative")
	}
	deps := builder.Deps{
		Client: s.client, Open: s.providers().Open, Logger: s.log, Secrets: s.secrets, Process: s.process,
		Hostname: short, FQDN: full, Version: app.Version,
		BuildWorkers: w.BuildWorkers, UploadWorkers: w.UploadWorkers, Refresh: s.watch.refresh, Deciding: s.gate.Enter,
	}
	for _, c := range change {
		c(&deps)
	}
	return builder.New(s.cfg, deps)
}

// BuildGuardCmd is the process between a builder and a build, which ends the
// build when its builder cannot. The builder starts it, nobody else.
type BuildGuardCmd struct{}

// Run is the command. It takes signals its own way.
func (BuildGuardCmd) Run() error { return dib.Guard(os.Stdin, os.Stdout) }
