package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/devenv"
	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/web"
	"poolkeeper/zkmodel"
)

// sweepWait is how long the end of a development environment may wait for its
// guests to stop.
const sweepWait = 30 * time.Second

// DevCmd runs everything on this machine.
type DevCmd struct {
	Dir           string `default:".poolkeeper" placeholder:"DIR" help:"Folder that holds everything (${default})."`
	ZooKeeperPort int    `name:"zookeeper-port" placeholder:"PORT" help:"Port of its ZooKeeper; by default a free one, chosen once."`
	NoLauncher    bool   `help:"Run no launcher; any number of them can be run beside: poolkeeper launcher."`
	workers
}

// Run is the command.
func (c DevCmd) Run(ctx context.Context, a *app.App) (err error) {
	// A terminal that goes away is as good as Ctrl-C: guests must not stay.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	// Nor does who reads what we print end us when it goes first: guests would stay. A
	// signal that is ignored would be so in builds, too; one that is caught is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	app.OwnUmask()
	if err := devenv.CheckTools(); err != nil {
		return err
	}
	env, err := devenv.Open(ctx, c.Dir, c.ZooKeeperPort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	log := a.Logger(hclog.Info)
	for _, warning := range env.Config().Warnings {
		log.Warn("Configuration", "finding", warning)
	}
	end := &stopping{a: a}
	started := app.NewTeller(a.Stderr).During(func() string { return "starting: waiting for ZooKeeper" })
	zookeeper, err := env.StartZooKeeper(ctx)
	started()
	switch {
	case err != nil && ctx.Err() != nil: // told to stop before it had begun
		return nil
	case err != nil:
		return err
	}
	defer func() {
		end.at("ZooKeeper")
		err = errors.Join(err, zookeeper.Stop())
		end.end()
	}()
	return c.serve(ctx, a, env, zookeeper, log, end)
}

// serve runs the daemons until ctx ends, or ZooKeeper does, and ends what they
// would leave to their next start.
func (c DevCmd) serve(ctx context.Context, a *app.App, env *devenv.Env, zookeeper *devenv.ZooKeeper, log hclog.Logger, end *stopping) error {
	client, err := app.Dial(env.Config().ZooKeeper, log) //nolint:contextcheck // the client outlives ctx, to say goodbye
	if err != nil {
		return err
	}
	defer client.Close()
	a.Flags.Config, a.Flags.Secure = env.ConfigFile(), ""
	s := site{cfg: env.Config(), client: client, log: log, secrets: &a.Secrets, watch: &configWatch{}}
	b, l, server, err := c.daemons(ctx, s)
	if err != nil {
		return err
	}
	tell(a.Stdout, env, server)

	group, running := errgroup.WithContext(ctx)
	context.AfterFunc(running, end.begin)
	group.Go(func() error { return accompany(running, a, s, pair{b, l}, server) })
	group.Go(func() error {
		select {
		case <-zookeeper.Exited():
			return zookeeper.Err()
		case <-running.Done():
			return nil
		}
	})
	err = group.Wait()
	// Interrupted or not: what runs here must not outlive the environment.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepWait)
	defer cancel()
	if c.NoLauncher {
		end.at("the launchers beside this environment to end")
		awaitLaunchers(ending, s, zookeeper)
	}
	end.at("the nodes of this environment to be deleted")
	err = errors.Join(err, endNodes(ending, s))
	select {
	case <-zookeeper.Exited(): // the launcher of the next start forgets them
		return err
	default:
		return errors.Join(err, forgetNodes(ending, s))
	}
}

// daemons makes builder and launcher, and one web server for both.
func (c DevCmd) daemons(ctx context.Context, s site) (b, l daemon, server *web.Server, err error) {
	metrics := prometheus.NewRegistry()
	launching, err := newLauncher(ctx, s, func(d *launcher.Deps) { d.Registerer = metrics })
	if err != nil {
		return nil, nil, nil, err
	}
	b, server, err = servedBuilder(ctx, s, c.workers, func(o web.Options) (*web.Server, error) {
		if builds := o.Ready; !c.NoLauncher {
			o.Ready = func() error { return errors.Join(builds(), launching.Ready()) }
		}
		o.Gatherer = prometheus.Gatherers{o.Gatherer, metrics}
		o.Daemon, o.Tree = "dev", wholeTree(launching.Tree())
		o.Tree.Requests = launching.Requests // which say why they wait
		return webFlags{}.listen(ctx, s, 0, o)
	})
	if c.NoLauncher {
		return b, onlooker{launching.Tree()}, server, err
	}
	return b, launching, server, err
}

// pair is a builder and a launcher that follow one file.
type pair [2]daemon

// Run runs both until ctx ends, or one does.
func (p pair) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, d := range p {
		group.Go(func() error { return d.Run(ctx) })
	}
	return group.Wait()
}

// Reload gives both another configuration.
func (p pair) Reload(cfg *configs.Config) error {
	var errs []error
	for _, d := range p {
		if r, ok := d.(reloader); ok {
			errs = append(errs, r.Reload(cfg))
		}
	}
	return errors.Join(errs...)
}

// onlooker stands where a launcher would, and follows the tree for the status
// page.
type onlooker struct{ tree *zkmodel.Mirror }

// Run follows the tree until ctx ends.
func (o onlooker) Run(ctx context.Context) error {
	if err := o.tree.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// endNodes deletes the machines of all providers: there is nobody left to use
// them.
func endNodes(ctx context.Context, s site) error {
	var errs []error
	process := s.providers()
	for _, cfg := range s.cfg.Providers {
		p, err := process.Open(cfg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, deleteNodes(ctx, p), p.Close())
	}
	return errors.Join(errs...)
}

// deleteNodes deletes all machines of a provider.
func deleteNodes(ctx context.Context, p providers.Provider) error {
	nodes, err := p.ListNodes(ctx)
	if err != nil {
		return fmt.Errorf("list nodes of %s: %w", p.Name(), err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error { return p.DeleteNode(ctx, node.ExternalID) })
	}
	return group.Wait()
}

// forgetNodes deletes the records of the nodes of the configured providers.
func forgetNodes(ctx context.Context, s site) error {
	session, err := s.client.Session(ctx)
	if err != nil {
		return fmt.Errorf("forget nodes: %w", err)
	}
	store := zkmodel.NewStore(session, nil)
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("forget nodes: %w", err)
	}
	for _, n := range nodes {
		if _, ours := s.cfg.Provider(n.Provider); !ours {
			continue
		}
		if err := session.DeleteTree(ctx, n.Path()); err != nil {
			return fmt.Errorf("forget node %s: %w", n.ID, err)
		}
	}
	return nil
}

// tell says where everything is, and what to do next.
func tell(w io.Writer, env *devenv.Env, server *web.Server) {
	cfg := env.Config()
	page := "none: the port of webapp is taken"
	if server != nil {
		page = "http://" + server.Addr() + "/"
	}
	fmt.Fprintf(w, "A development environment runs in %s.\n\n", env.Dir)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"status page", page},
		{"configuration", env.ConfigFile()},
		{"ZooKeeper", cfg.ZooKeeper.Servers[0] + ", log and data in " + env.ZooKeeperDir()},
		{"elements", env.ElementsDir()},
		{"images", cfg.ImagesDir},
		{"build logs", cfg.BuildLogDir},
		{"nodes", env.CloudDir()},
		{"key", env.KeyFile()},
	} {
		fmt.Fprintf(table, "  %s\t%s\n", row[0], row[1])
	}
	_ = table.Flush() // as any print
	command := programName() + " -c " + env.ConfigFile()
	fmt.Fprintf(w, "\nIn another terminal:\n  %s dib-image-list\n  %s image-list\n  %s list\n", command, command, command)
	if labels := cfg.Labels; len(labels) > 0 {
		fmt.Fprintf(w, "  %s request %s --hold\n  %s ssh -i %s NODE\n", command, labels[0].Name, command, env.KeyFile())
	}
	fmt.Fprintf(w, "\nCtrl-C ends it.\n")
}

// programName is what starts this program from any folder: its name where the
// shell finds that, else its file.
func programName() string {
	us, err := os.Executable()
	if err != nil {
		return "poolkeeper"
	}
	found, err := exec.LookPath("poolkeeper")
	if err != nil {
		return us
	}
	ours, err := os.Stat(us)
	theirs, foundErr := os.Stat(found)
	if err == nil && foundErr == nil && os.SameFile(ours, theirs) {
		return "poolkeeper"
	}
	return us
}
