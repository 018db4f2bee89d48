package main

import (
	"context"
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// app is what the commands share.
type app struct {
	flags  *cli
	stdout io.Writer
	stderr io.Writer
}

// logger makes the logger of a daemon.
func (a *app) logger(level hclog.Level) hclog.Logger {
	if a.flags.Debug {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       "poolkeeper",
		Level:      level,
		Output:     a.stderr,
		JSONFormat: a.flags.LogJSON,
	})
}

// config loads the configuration as the daemons do.
func (a *app) config() (*configs.Config, error) {
	return configs.Load(a.flags.Config, configs.Options{SecurePath: a.flags.Secure})
}

// dial connects to the ZooKeeper of a configuration.
func dial(z configs.ZooKeeper, log hclog.Logger, change ...func(*recipe.Config)) (*recipe.Client, error) {
	cfg := recipe.Config{Servers: z.Servers, Chroot: z.Chroot, Timeout: z.Timeout, Logger: log.Named("zookeeper")}
	for _, c := range change {
		c(&cfg)
	}
	if z.TLS != nil {
		cfg.TLS = &recipe.TLS{
			CertFile: z.TLS.Cert, KeyFile: z.TLS.Key, CAFile: z.TLS.CA,
			VerifyHostname: z.TLS.VerifyHostname,
		}
	}
	if z.Auth != nil {
		cfg.Digest = &recipe.Digest{User: z.Auth.User, Password: z.Auth.Password, Private: z.Auth.OwnerOnly}
	}
	return recipe.Dial(cfg)
}

// withStore runs a command's body on the tree. Unlike a daemon, a command does
// not wait for ever for ZooKeeper.
func (a *app) withStore(ctx context.Context, body func(context.Context, *configs.Config, *zkmodel.Store) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	// The tree is the daemons' to make: a chroot that is missing is a mistake in
	// the configuration, and an empty listing would hide it.
	existing := func(c *recipe.Config) { c.ChrootExists = true }
	client, err := dial(cfg.ZooKeeper, a.logger(hclog.Error), existing) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	waiting, cancel := context.WithTimeoutCause(ctx, a.flags.Wait, fmt.Errorf("no answer within %s", a.flags.Wait))
	defer cancel()
	session, err := client.Session(waiting)
	if err != nil {
		return fmt.Errorf("reach ZooKeeper: %w", err)
	}
	bound, release := session.Bind(ctx)
	defer release()
	return body(bound, cfg, zkmodel.NewStore(session, nil))
}
