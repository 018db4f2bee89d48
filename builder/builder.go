package builder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/command"
	"poolkeeper/builder/control"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/presence"
	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers/registry"
	"poolkeeper/zkmodel"
)

// Builder is one builder daemon.
type Builder struct {
	config  atomic.Pointer[configs.Config]
	deps    Deps
	log     hclog.Logger
	metrics *metrics
	news    *news
	mirror  *zkmodel.Mirror
	clouds  lender
	self    *presence.Self
	control *control.Control
	waves   *waves.Driver
	images  *disk.Images // of the run that is under way
}

// New checks what it is given and makes a Builder. Nothing happens before Run.
func New(cfg *configs.Config, deps Deps) (*Builder, error) {
	if cfg == nil {
		return nil, errors.New("make builder: a configuration is required")
	}
	if cfg.ImagesDir == "" {
		return nil, fmt.Errorf("make builder: %s has no images-dir", cfg.Path)
	}
	deps, err := deps.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(deps.Registerer, newStats(deps.Statsd, deps.FQDN, deps.Now))
	if err != nil {
		return nil, fmt.Errorf("make builder: %w", err)
	}
	b := &Builder{deps: deps, log: deps.Logger.Named("builder"), metrics: m, news: newNews(deps.Client)}
	b.config.Store(cfg)
	b.mirror = zkmodel.NewMirror(deps.Client, zkmodel.PartImages|zkmodel.PartComponents, b.log.Named("mirror"))
	b.followCanaries(cfg)
	b.clouds = newLender(deps.Open, b.trouble)
	if deps.Registerer != nil {
		if err := deps.Registerer.Register(registry.NewFigures(b.clouds.Known)); err != nil {
			return nil, fmt.Errorf("make builder: %w", err)
		}
	}
	b.self = presence.NewSelf(deps.Client, deps.Hostname, deps.Version, zkmodel.Served(cfg.ProviderNames()), deps.Process, zkmodel.BuilderWork{
		Host: deps.FQDN, BuildWorkers: deps.BuildWorkers, UploadWorkers: deps.UploadWorkers,
	})
	b.control = control.New(control.Deps{
		Config: b.config.Load, Client: deps.Client, Mirror: b.mirror, Self: b.self, Metrics: m, Log: b.log,
		Step: deps.Step, Worker: b.worker, ForgetSeries: b.forgetSeries, LogURL: b.logURL, Now: deps.Now, FQDN: deps.FQDN, Arch: deps.Arch,
		BuildWorkers: deps.BuildWorkers, UploadWorkers: deps.UploadWorkers, Deciding: deps.Deciding,
		Tracer: deps.Tracer, Paused: deps.Process.Paused, Policy: deps.Policy, Resync: deps.Resync, HostEvery: deps.HostEvery,
	})
	b.waves = waves.New(waves.Deps{
		Client: deps.Client, Mirror: b.mirror, Config: b.config.Load, Now: b.control.Time, Host: deps.FQDN,
		Retry: deps.Policy.BuildRetry, Resync: deps.Resync, Metrics: m, Log: b.log.Named("waves"), Step: deps.WaveStep,
		Mask: deps.Secrets.Text,
		Hold: deps.Process.Hold, Deciding: deps.Deciding, Arch: deps.Arch, Workers: deps.BuildWorkers, Factor: deps.Policy.SpaceFactor, Free: b.free,
	})
	b.knowProviders(cfg)
	return b, nil
}

// Run builds, uploads and cleans until ctx ends, over as many sessions as that
// takes; builds and uploads under way are then stopped, and left to others. It
// returns nil when ctx has ended.
//
// Errors: disk.ErrInUse, or what else is wrong with images-dir; ErrSameID.
func (b *Builder) Run(ctx context.Context) error {
	images, err := disk.OpenOn(b.deps.Host, b.config.Load().ImagesDir)
	if err != nil {
		return err
	}
	defer func() {
		if err := errors.Join(b.clouds.Close(), images.Close()); err != nil {
			b.log.Warn("Cannot close providers or images-dir", "error", err)
		}
	}()
	id, err := images.BuilderID()
	if err != nil {
		return err
	}
	b.images = images
	if err := images.Reclaim(ctx); err != nil {
		b.log.Error("Something is left of an earlier build", "error", err)
	}
	group, ctx := errgroup.WithContext(clock.With(ctx, b.deps.Client.Clock()))
	group.Go(func() error { return b.control.Run(ctx, images, id) })
	group.Go(func() error {
		_ = b.news.run(ctx) // until ctx ends, or the client is closed, which others say
		return nil
	})
	group.Go(func() error {
		if err := b.waves.Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		b.metrics.stats.run(ctx, b.config.Load, b.mirror.Image)
		return nil
	})
	return group.Wait()
}

// free is how many bytes builds may write; negative when nobody knows.
func (b *Builder) free() int64 {
	free, err := b.images.Free()
	if err != nil {
		return -1
	}
	return free
}

// worker does the actions of a session.
func (b *Builder) worker(s control.Session) control.Actions {
	return actions.NewWorker(actions.Deps{
		Config: b.config.Load, Store: s.Store, Tree: b.mirror, Images: s.Images, Use: b.clouds.use,
		Commands: &command.Runner{
			Images: s.Images, Session: s.Store.Session(), Host: b.deps.Host, Guard: b.deps.Guard, Environ: b.deps.Environ,
			Secrets: b.deps.Secrets, Log: b.log, Step: b.deps.Step,
		},
		Snapshots: b.control, Host: b.control, InFlight: b.control.InFlight(), Trials: s.Trials, Cancels: b.control.Cancels(),
		Metrics: b.metrics, Tracer: b.deps.Tracer, Log: b.log, Now: b.control.Time, ClockOff: b.control.ClockOff,
		FQDN: b.deps.FQDN, BuilderID: s.BuilderID, Site: s.Site,
		Policy: b.deps.Policy, LeakAge: b.deps.LeakAge, Refresh: b.deps.Refresh, Deciding: b.deps.Deciding,
		Logs: b.deps.Logs, LogURL: b.deps.LogURL, Step: b.deps.Step, Hold: b.deps.Process.Hold,
	})
}
