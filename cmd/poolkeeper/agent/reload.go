package agent

import (
	"context"
	"reflect"
	"slices"

	"poolkeeper/configs"
)

// reloader is a daemon that can go on with another configuration.
type reloader interface {
	Reload(cfg *configs.Config) error
}

// reload hands a new configuration on.
func reload(ctx context.Context, k *keeper, current, next *configs.Config) error {
	s := k.s
	for _, warning := range next.Warnings {
		s.log.Warn("Configuration", "finding", warning)
	}
	if err := k.reload(ctx, next); err != nil {
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
