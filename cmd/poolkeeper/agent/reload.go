package agent

import (
	"context"

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
	if keys := configs.NeedRestart(current, next); len(keys) > 0 {
		s.log.Warn("These keys have changed, which takes effect at the next start", "keys", keys)
	}
	return s.client.SetServers(next.ZooKeeper.Servers)
}
