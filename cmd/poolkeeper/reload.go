package main

import (
	"context"
	"os"
	"os/signal"
	"reflect"
	"slices"
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
func (a *app) watchConfig(ctx context.Context, s site, d reloader, every time.Duration) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	tick := time.NewTicker(every)
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
		ended := tellReload(s, d)
		next, err := a.config()
		if err == nil {
			err = a.reload(s, d, current, next)
		}
		ended(err)
		if err != nil {
			s.log.Error("Configuration not reloaded; the old one stays", "error", err)
			continue
		}
		current, tried = next, next.Digest()
	}
}

// reload hands a new configuration on.
func (a *app) reload(s site, d reloader, current, next *configs.Config) error {
	for _, warning := range next.Warnings {
		s.log.Warn("Configuration", "finding", warning)
	}
	if err := d.Reload(next); err != nil {
		return err
	}
	if keys := needRestart(current, next); len(keys) > 0 {
		s.log.Warn("These keys have changed, which takes effect at the next start", "keys", keys)
	}
	return s.client.SetServers(next.ZooKeeper.Servers)
}

// needRestart names what has changed and is only looked at when a daemon starts.
func needRestart(current, next *configs.Config) (keys []string) {
	a, b := current.ZooKeeper, next.ZooKeeper
	for key, same := range map[string]bool{
		"webapp":            current.WebApp == next.WebApp,
		"chroot":            a.Chroot == b.Chroot,
		"zookeeper-timeout": a.Timeout == b.Timeout,
		"zookeeper-tls":     reflect.DeepEqual(a.TLS, b.TLS),
		"zookeeper-auth":    reflect.DeepEqual(a.Auth, b.Auth),
	} {
		if !same {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
