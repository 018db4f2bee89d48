// Package agent runs the daemons: the commands builder, launcher and dev, and what goes on
// beside a daemon, as its pages, the watch over its configuration, systemd and operators'
// words to it.
package agent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/configs/statsd"
	"poolkeeper/providers/drivers"
	"poolkeeper/web"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/figures"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/lift"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// daemonFlags are Nodepool's flags of a daemon that units and scripts carry. The daemon always stays in the foreground,
// and writes the file of -p.
type daemonFlags struct {
	Foreground bool   `short:"f" hidden:""`
	NoDaemon   bool   `short:"d" hidden:""`
	PIDFile    string `short:"p" name:"pid-file" hidden:""`
}

// daemon is what a command runs until it is told to stop.
type daemon interface {
	Run(ctx context.Context) error
}

// site is what a daemon is made from.
type site struct {
	cfg     *configs.Config
	client  *recipe.Client
	log     hclog.Logger
	secrets *redact.Secrets
	watch   *configWatch // of the configuration; nil where it stays as it is
	guarded *guarded     // nil guards nothing
	// pushed receives when another configuration may have been pushed to the fleet; nil
	// where the configuration is a file.
	pushed  <-chan struct{}
	fleet   *fleet.Agent      // nil where the configuration is a file
	gate    *fleet.Gate       // of decisions; nil where the configuration is a file
	events  *dispatch.Service // nil tells of nothing
	process *zkmodel.Process  // this one, as the record of the daemon tells of it
	hooks   *hook.Desk        // nil is told nothing
	reloads *figures.Reloads  // how the configuration was read last; nil where nobody tells
	statsd  *statsd.Client    // nil is sent nothing
	tracer  *trace.Tracer     // nil tells nothing
	beside  *beside           // nil where nothing else can go on
}

// providers opens the providers of a process.
func (s site) providers() *drivers.Process {
	return &drivers.Process{Logger: s.log.Named("provider"), Secrets: s.secrets, Statsd: s.statsd}
}

// serve loads the configuration, connects and runs a daemon until ctx ends.
// Unlike a command, a daemon waits for a ZooKeeper that is not there.
func (f daemonFlags) serve(ctx context.Context, a *app.App, name string, build func(site) (daemon, *web.Server, error)) error {
	app.OwnUmask()
	a.Flags.Debug = a.Flags.Debug || f.NoDaemon // -d is "foreground, and debug" there
	if a.OfFleet() {
		return serveFleet(ctx, a, name, func(ctx context.Context, s site) error { return f.run(ctx, a, name, s, build) })
	}
	cfg, err := a.Config(ctx)
	if err != nil {
		return app.WrongConfig(err)
	}
	log := a.DaemonLogger()
	client, err := app.Dial(cfg.ZooKeeper, log) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	return f.run(ctx, a, name, site{cfg: cfg, client: client, log: log}, build)
}

// run runs a daemon that has a configuration and a client.
func (f daemonFlags) run(ctx context.Context, a *app.App, name string, s site, build func(site) (daemon, *web.Server, error)) error {
	cfg, log := s.cfg, s.log
	for _, warning := range cfg.Warnings {
		log.Warn("Configuration", "finding", warning)
	}
	remove, err := writePID(f.PIDFile)
	if err != nil {
		return err
	}
	defer remove()
	_, host, err := app.Hostnames(ctx)
	if err != nil {
		return err
	}
	s.secrets, s.watch, s.guarded = &a.Secrets, &configWatch{}, &guarded{kind: name, host: host}
	address, err := statsd.Address(os.Getenv)
	if err != nil {
		return err
	}
	s.statsd = statsd.New(address)
	about := trace.About{Service: "poolkeeper-" + name, Version: app.Version, Host: host}
	if s.tracer, err = trace.FromEnvironment(ctx, os.Getenv, about, s.secrets, log); err != nil {
		return err
	}
	defer func() {
		if err := s.tracer.Close(ctx); err != nil {
			log.Warn("The last traces are lost", "error", err)
		}
	}()
	s.beside = &beside{}
	s.process, s.reloads = newProcess(), figures.NewReloads(time.Now())
	s.events = app.NewEvents(s.client, s.process, s.log, name, host)
	s.events.Set(app.EventOptions(cfg))
	s.hooks = hook.NewDesk(s.client, name+" "+host)
	s.hooks.Set(hookSettings(cfg))
	d, server, err := build(s)
	if err != nil {
		return err
	}
	storeLastGood(a, log, cfg)
	log.Info("Started", "daemon", name, "version", app.Version, "configuration", cfg.Path)
	time.AfterFunc(startTime, releaseProgramPages)
	if err := accompany(ctx, a, s, d, server); err != nil {
		return err
	}
	log.Info("Stopped", "daemon", name)
	return nil
}

// writePID writes our process id into a file, if one is given; remove deletes it, unless another process has replaced it.
func writePID(file string) (remove func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	id := strconv.Itoa(os.Getpid()) + "\n"
	if err := os.WriteFile(file, []byte(id), 0o644); err != nil { //nolint:gosec // scripts of other users read it
		return nil, fmt.Errorf("write pid file: %w", err)
	}
	return func() {
		if now, err := os.ReadFile(file); err == nil && string(now) == id {
			_ = os.Remove(file) // the next start overwrites it
		}
	}, nil
}

// accompany runs a daemon with its web server, reloads its configuration and
// tells systemd of it, as far as the daemon knows how to.
func accompany(ctx context.Context, a *app.App, s site, d daemon, server *web.Server) error {
	beside, stop := context.WithCancel(ctx)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	run := d
	if r, ok := d.(reloader); ok {
		k := newKeeper(s, r)
		begun := make(chan struct{})
		run = guardedDaemon{d, k, begun}
		hup := make(chan os.Signal, 1) // before it can end us; files are read again at the begin anyway
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		group.Go(func() {
			select {
			case <-begun:
				watchConfig(beside, a, k, reloadEvery)
			case <-beside.Done():
			}
		})
	}
	if c, ok := d.(checker); ok {
		group.Go(func() { tellSystemd(beside, s, c) })
	}
	if s.process != nil {
		m := &managed{s: s, d: d, stop: end, began: time.Now()}
		group.Go(func() { m.run(beside) })
		group.Go(func() { m.signalled(beside) })
	}
	if s.client != nil {
		lifter := &lift.Lifter{Client: s.client, Log: s.log.Named("pauses")}
		group.Go(func() { lifter.Run(beside) })
	}
	if s.events != nil {
		group.Go(func() { s.events.Run(beside) })
	}
	group.Go(func() {
		s.statsd.Run(beside, func(address string, err error, again time.Duration) {
			s.log.Warn("Figures are not sent to statsd; it is tried again", "address", address, "error", err, "retry", again)
		})
	})
	if s.beside != nil {
		for _, run := range s.beside.all {
			group.Go(func() { run(beside) })
		}
	}
	err := runServed(ctx, s, run, server)
	stop()
	group.Wait()
	return err
}

// runServed runs a daemon and its web server, which may be nil, until the daemon
// has ended. One that is no longer served goes on.
func runServed(ctx context.Context, s site, d daemon, server *web.Server) error {
	if server == nil {
		return d.Run(ctx)
	}
	serving, silence := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() {
		if err := server.Run(serving); err != nil {
			s.log.Error("Serving no status, logs and metrics any more", "error", err)
		}
	})
	err := d.Run(ctx)
	silence()
	group.Wait()
	return err
}
