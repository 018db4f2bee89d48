package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"poolkeeper/configs"
)

// reloadEvery is how often the files of the configuration are looked at.
const reloadEvery = 5 * time.Second

// reloader is a daemon that can go on with another configuration.
type reloader interface {
	Reload(cfg *configs.Config) error
}

// watchConfig reloads the configuration when its files change, or SIGHUP comes,
// until ctx ends. One that is wrong changes nothing; it is tried again when it
// has changed again.
func (a *app) watchConfig(ctx context.Context, s site, d reloader) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	current, tried := s.cfg, s.cfg.Digest()
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		case <-tick.C:
			if current.DigestNow() == tried {
				continue
			}
		}
		tried = current.DigestNow()
		next, err := a.config()
		if err == nil {
			err = a.reload(s, d, next)
		}
		if err != nil {
			s.log.Error("Configuration not reloaded; the old one stays", "error", err)
			continue
		}
		current, tried = next, next.Digest()
	}
}

// reload hands a new configuration on.
func (a *app) reload(s site, d reloader, next *configs.Config) error {
	if err := s.client.SetServers(next.ZooKeeper.Servers); err != nil {
		return err
	}
	for _, warning := range next.Warnings {
		s.log.Warn("Configuration", "finding", warning)
	}
	return d.Reload(next)
}
