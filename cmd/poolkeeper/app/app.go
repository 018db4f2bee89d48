// Package app is what the commands of the program share: its global flags, its streams and
// secrets, the configuration, a session of ZooKeeper with a deadline, and how results,
// waiting and errors are told.
package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// Version is set by the linker.
var Version = "unknown"

// Flags are those that are accepted before and after any command.
type Flags struct {
	Config     string           `short:"c" placeholder:"FILE" default:"/etc/nodepool/nodepool.yaml" help:"Configuration file (${default}); zk: is the one that was pushed to the fleet."`
	HostConfig string           `placeholder:"FILE" default:"/etc/nodepool/host.yaml" help:"With -c zk:, the file with what is this host's own (${default})."`
	Secure     string           `short:"s" placeholder:"FILE" help:"Configuration file with the secrets."`
	Debug      bool             `help:"Log what happens in detail."`
	LogJSON    bool             `name:"log-json" help:"Log one JSON object a line."`
	Wait       time.Duration    `name:"zookeeper-wait" default:"10s" help:"How long a command waits for ZooKeeper (${default})."`
	Version    kong.VersionFlag `help:"Print the version."`

	// Nodepool's; commands accept it for the sake of scripts that carry it.
	LogConfig string `short:"l" placeholder:"FILE" help:"Logging file of Nodepool, for daemons: level and file are heeded."`
}

// App is what the commands share.
type App struct {
	Flags   *Flags
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Secrets redact.Secrets // of all that was read; they show nowhere
	Fleet   *fleet.Agent   // of the configuration, where it is the fleet's; nil before it is asked for
	// FakeBuilds replaces diskimage-builder in the configuration, for tests.
	FakeBuilds bool
	reads      bool // the command changes nothing; see Reads
}

// Reads marks the command as one that changes nothing. If the configuration file is broken, such a command uses the
// last good one that a daemon of this host stored.
func (a *App) Reads() *App {
	a.reads = true
	return a
}

// Logger makes a logger that writes to stderr.
func (a *App) Logger(level hclog.Level) hclog.Logger { return a.logger(level, a.Stderr) }

// logger makes a logger that writes to out.
func (a *App) logger(level hclog.Level, out io.Writer) hclog.Logger {
	if a.Flags.Debug {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{
		Name:       "poolkeeper",
		Level:      level,
		Output:     a.Secrets.Writer(out),
		JSONFormat: a.Flags.LogJSON,
	})
}

// Config loads the configuration as the daemons do.
func (a *App) Config(ctx context.Context) (*configs.Config, error) {
	load := func() (*configs.Config, error) { return a.load(configs.Options{SecurePath: a.Flags.Secure}) }
	if a.OfFleet() {
		load = func() (*configs.Config, error) { return a.FleetConfig(ctx) }
	}
	cfg, err := load()
	if err == nil && a.FakeBuilds {
		for i := range cfg.DiskImages {
			cfg.DiskImages[i].DIBCmd = fakeDIB
		}
	}
	return cfg, err
}

// fakeDIB makes tiny files in the place of diskimage-builder.
const fakeDIB = `sh -c 'while [ $# -gt 0 ]; do case "$1" in -t) formats=$2;; -o) out=$2;; esac; shift; done; ` +
	`for f in $(echo "$formats" | tr , " "); do { case $f in qcow2) printf "QFI\373\0\0\0\3";; vhd) printf "conectix%504s" "";; esac; ` +
	`echo fake; case $f in vhd) printf "conectix%504s" "";; esac; } >"$out.$f" || exit; done' fake-image-create`

// load loads a configuration file. A command that reads falls back to the last good one.
func (a *App) load(opts configs.Options) (*configs.Config, error) {
	cfg, err := configs.Load(a.Flags.Config, opts)
	if err != nil && a.reads {
		if last := a.LastGood(err, opts); last != nil {
			return last, nil
		}
	}
	return a.KeepSecret(cfg, err)
}

// LastGood returns the configuration that a daemon of this host loaded last, with a warning that says why the file
// itself is not used. It returns nil if no copy is stored or the copy cannot be loaded either.
func (a *App) LastGood(broken error, opts configs.Options) *configs.Config {
	cfg, stored, err := configs.LoadLastGood(a.Flags.Config, opts)
	if err != nil {
		return nil
	}
	first, more, _ := strings.Cut(a.Secrets.Error(broken).Error(), "\n")
	if more != "" {
		first += fmt.Sprintf(" (and %d more)", strings.Count(more, "\n")+1)
	}
	fmt.Fprintf(a.Stderr, "poolkeeper: warning: %s; using the configuration that a daemon stored at %s\n",
		listing.Visible(first), stored.UTC().Format(time.RFC3339))
	cfg, _ = a.KeepSecret(cfg, nil)
	return cfg
}

// ConfigWithPlaces is Config, with the lines of its keys where it is a file, for who has
// something to say of them.
func (a *App) ConfigWithPlaces(ctx context.Context) (*configs.Config, error) {
	if a.OfFleet() {
		return a.FleetConfig(ctx)
	}
	return a.load(configs.Options{SecurePath: a.Flags.Secure, Places: true})
}

// KeepSecret has the secrets of a configuration show nowhere.
func (a *App) KeepSecret(cfg *configs.Config, err error) (*configs.Config, error) {
	if err == nil {
		a.Secrets.Add(cfg.Secrets()...)
	}
	return cfg, err
}

// Dial connects to the ZooKeeper of a configuration.
func Dial(z configs.ZooKeeper, log hclog.Logger, change ...func(*recipe.Config)) (*recipe.Client, error) {
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

// WithStore runs a command's body on the tree. Unlike a daemon, a command does
// not wait for ever for ZooKeeper.
func (a *App) WithStore(ctx context.Context, body func(context.Context, *configs.Config, *zkmodel.Store) error) error {
	return a.WithClient(ctx, func(ctx context.Context, cfg *configs.Config, _ *recipe.Client, store *zkmodel.Store) error {
		return body(ctx, cfg, store)
	})
}

// WithClient is WithStore for a body that follows the tree, too.
func (a *App) WithClient(ctx context.Context, body func(context.Context, *configs.Config, *recipe.Client, *zkmodel.Store) error) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	return a.Reaching(ctx, cfg.ZooKeeper, func(ctx context.Context, client *recipe.Client, session *recipe.Session) error {
		tellsAs(client, cfg)
		return body(ctx, cfg, client, zkmodel.NewStore(session, nil).WithCanaries(cfg.HasCanary()))
	})
}

// Reaching runs a command's body in a session of a ZooKeeper.
func (a *App) Reaching(ctx context.Context, z configs.ZooKeeper, body func(context.Context, *recipe.Client, *recipe.Session) error) error {
	// The tree is the daemons' to make: a chroot that is missing is a mistake in
	// the configuration, and an empty listing would hide it.
	existing := func(c *recipe.Config) { c.ChrootExists = true }
	client, err := Dial(z, a.Logger(hclog.Error), existing) //nolint:contextcheck // the client outlives ctx, to say goodbye
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
