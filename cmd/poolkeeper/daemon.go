package main

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/web"
	"poolkeeper/zkmodel/recipe"
)

// daemonFlags are Nodepool's flags of a daemon that units and scripts carry.
// Poolkeeper always stays in the foreground; systemd or a container keeps it.
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
	cfg    *configs.Config
	client *recipe.Client
	log    hclog.Logger
}

// serve loads the configuration, connects and runs a daemon until ctx ends.
// Unlike a command, a daemon waits for a ZooKeeper that is not there.
func (f daemonFlags) serve(ctx context.Context, a *app, name string, build func(site) (daemon, *web.Server, error)) error {
	a.flags.Debug = a.flags.Debug || f.NoDaemon // -d is "foreground, and debug" there
	cfg, err := a.config()
	if err != nil {
		return err
	}
	log := a.logger(hclog.Info)
	for _, warning := range cfg.Warnings {
		log.Warn("Configuration", "finding", warning)
	}
	if a.flags.LogConfig != "" || f.PIDFile != "" {
		log.Warn("Logs go to stderr, and no pid file is written: -l and -p have no effect")
	}
	client, err := dial(cfg.ZooKeeper, log) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	s := site{cfg, client, log}
	d, server, err := build(s)
	if err != nil {
		return err
	}
	log.Info("Started", "daemon", name, "version", version, "configuration", cfg.Path)
	if err := a.accompany(ctx, s, d, server); err != nil {
		return err
	}
	log.Info("Stopped", "daemon", name)
	return nil
}

// accompany runs a daemon with its web server, reloads its configuration and
// tells systemd of it, as far as the daemon knows how to.
func (a *app) accompany(ctx context.Context, s site, d daemon, server *web.Server) error {
	beside, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	if r, ok := d.(reloader); ok {
		group.Go(func() { a.watchConfig(beside, s, r, reloadEvery) })
	}
	if c, ok := d.(checker); ok {
		group.Go(func() { tellSystemd(beside, s, c) })
	}
	err := runServed(ctx, s, d, server)
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

// hostnames are the short and the full name of this host. The resolver is asked
// for the full one, but not for long: names are for people here.
func hostnames(ctx context.Context) (short, full string, err error) {
	name, err := os.Hostname()
	if err != nil {
		return "", "", err
	}
	short, _, dotted := strings.Cut(name, ".")
	if dotted {
		return short, name, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	canonical, err := new(net.Resolver).LookupCNAME(ctx, name)
	if err != nil || !strings.HasPrefix(canonical, short+".") {
		return short, short, nil
	}
	return short, strings.TrimSuffix(canonical, "."), nil
}
