package agent

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/launcher"
	"poolkeeper/web"
	"poolkeeper/zkmodel/event/observe"
)

// LauncherCmd runs the launcher.
type LauncherCmd struct {
	daemonFlags
	webFlags
}

// Run is the command.
func (c LauncherCmd) Run(ctx context.Context, a *app.App) error {
	return c.serve(ctx, a, "launcher", func(s site) (daemon, *web.Server, error) {
		return servedLauncher(ctx, s, func(o web.Options) (*web.Server, error) { return c.listen(ctx, s, 0, o) })
	})
}

// servedLauncher makes the daemon and, by listen, its web server, which may be nil.
func servedLauncher(ctx context.Context, s site, listen func(web.Options) (*web.Server, error)) (daemon, *web.Server, error) {
	_, full, err := app.Hostnames(ctx)
	if err != nil {
		return nil, nil, err
	}
	metrics := newMetrics(s)
	l, err := newLauncher(ctx, s, func(d *launcher.Deps) { d.Registerer, d.Statsd, d.Tracer = metrics, s.statsd, s.tracer })
	if err != nil {
		return nil, nil, err
	}
	s.observe(l.Tree(), "launcher", full, observe.Images, observe.Requests, observe.Nodes)
	if err := tellTree(metrics, s, l.Config, l.Tree()); err != nil {
		return nil, nil, err
	}
	tree := s.withBeside(wholeTree(l.Tree()))
	tree.Requests = l.Requests // which say why they wait
	server, err := listen(web.Options{
		Daemon: "launcher", Host: full, Ready: l.Ready, Alive: l.Check, Gatherer: metrics, Tree: tree, History: s.record(metrics, l.Tree(), "launcher", true),
		Guarded: s.guarded.texts, Configured: l.HasImage, Config: l.Config,
	})
	return l, server, err
}

// newLauncher makes the daemon.
func newLauncher(ctx context.Context, s site, change ...func(*launcher.Deps)) (*launcher.Service, error) {
	short, full, err := app.Hostnames(ctx)
	if err != nil {
		return nil, err
	}
	deps := launcher.Deps{
		Client: s.client, Open: s.providers().Open, Logger: s.log, Process: s.process, Secrets: s.secrets,
		Hostname: short, FQDN: full, Version: app.Version, Deciding: s.gate.Enter,
	}
	for _, c := range change {
		c(&deps)
	}
	return launcher.NewService(s.cfg, deps)
}
