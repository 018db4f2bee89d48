package main

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/secret"
	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// app is what the commands share.
type app struct {
	flags   *cli
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	secrets redact.Secrets // of all that was read; they show nowhere
	fleet   *fleet.Agent   // of the configuration, where it is the fleet's; nil before it is asked for
}

// ofSecrets is what the commands about sealed values get.
func (a *app) ofSecrets() *secret.App {
	s := &secret.App{
		Config: a.flags.Config, Secure: a.flags.Secure,
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Secrets: &a.secrets,
	}
	if a.ofFleet() {
		s.Fleet = a.sealedVersion
	}
	return s
}

// sealedVersion is the fleet's configuration for who looks for sealed values in it.
func (a *app) sealedVersion(ctx context.Context) (secret.Version, error) {
	k, err := a.offeredVersion(ctx)
	if err != nil {
		return secret.Version{}, err
	}
	cfg, err := configs.Load(k.Version.Name(),
		configs.Options{SecurePath: a.flags.Secure, HostPath: a.flags.HostConfig, Text: k.Text, Keyless: true})
	if err != nil {
		return secret.Version{}, err
	}
	return secret.Version{Name: k.Version.Name(), Text: k.Text, Files: cfg.Files()}, nil
}

// logger makes the logger of a daemon.
func (a *app) logger(level hclog.Level) hclog.Logger {
	if a.flags.Debug {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       "poolkeeper",
		Level:      level,
		Output:     a.secrets.Writer(a.stderr),
		JSONFormat: a.flags.LogJSON,
	})
}

// config loads the configuration as the daemons do.
func (a *app) config(ctx context.Context) (*configs.Config, error) {
	if a.ofFleet() {
		return a.fleetConfig(ctx)
	}
	return a.keepSecret(configs.Load(a.flags.Config, configs.Options{SecurePath: a.flags.Secure}))
}

// keepSecret has the secrets of a configuration show nowhere.
func (a *app) keepSecret(cfg *configs.Config, err error) (*configs.Config, error) {
	if err == nil {
		a.secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
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
	return a.withClient(ctx, func(ctx context.Context, cfg *configs.Config, _ *recipe.Client, store *zkmodel.Store) error {
		return body(ctx, cfg, store)
	})
}

// each does something to each of what ids name. What fails with one does not
// keep it from the others.
func (a *app) each(ctx context.Context, ids []string, do func(ctx context.Context, store *zkmodel.Store, id string) error) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		var failed error
		for _, id := range ids {
			failed = errors.Join(failed, do(ctx, store, id))
		}
		return failed
	})
}

// withClient is withStore for a body that follows the tree, too.
func (a *app) withClient(ctx context.Context, body func(context.Context, *configs.Config, *recipe.Client, *zkmodel.Store) error) error {
	cfg, err := a.config(ctx)
	if err != nil {
		return err
	}
	return a.reaching(ctx, cfg.ZooKeeper, func(ctx context.Context, client *recipe.Client, session *recipe.Session) error {
		tellsAs(client, cfg)
		return body(ctx, cfg, client, zkmodel.NewStore(session, nil).WithCanaries(cfg.HasCanary()))
	})
}

// reaching runs a command's body in a session of a ZooKeeper.
func (a *app) reaching(ctx context.Context, z configs.ZooKeeper, body func(context.Context, *recipe.Client, *recipe.Session) error) error {
	// The tree is the daemons' to make: a chroot that is missing is a mistake in
	// the configuration, and an empty listing would hide it.
	existing := func(c *recipe.Config) { c.ChrootExists = true }
	client, err := dial(z, a.logger(hclog.Error), existing) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	session, err := a.connect(ctx, client)
	if err != nil {
		return err
	}
	bound, release := session.Bind(ctx)
	defer release()
	return body(bound, client, session)
}
