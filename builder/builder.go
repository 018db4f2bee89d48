package builder

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/builder/disk"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Builder is one builder daemon.
type Builder struct {
	config  atomic.Pointer[configs.Config]
	deps    Deps
	log     hclog.Logger
	metrics *metrics
	mirror  *zkmodel.Mirror
	clouds  *clouds
	self    *self
	doing   doing
	roster  *roster
	cancels *cancels
	leaks   leaks
	woken   chan struct{}
	pulse   chan struct{} // the loop takes what is sent
	working atomic.Bool   // the loop runs

	// Of the run that is under way.
	images *disk.Images
	id     string // builder_id.txt
	site   string // what our images in clouds carry
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
	m, err := newMetrics(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("make builder: %w", err)
	}
	b := &Builder{deps: deps, log: deps.Logger.Named("builder"), metrics: m, woken: make(chan struct{}, 1), pulse: make(chan struct{})}
	b.config.Store(cfg)
	b.mirror = zkmodel.NewMirror(deps.Client, zkmodel.PartImages|zkmodel.PartComponents, b.log.Named("mirror"))
	b.clouds = newClouds(deps.Open)
	b.roster = newRoster(deps.Now())
	b.cancels = newCancels(deps.Client)
	b.self = newSelf(deps)
	return b, nil
}

// Run builds, uploads and cleans until ctx ends, over as many sessions as that
// takes; builds and uploads under way are then stopped, and left to others. It
// returns nil when ctx has ended.
//
// Errors: disk.ErrInUse, or what else is wrong with images-dir.
func (b *Builder) Run(ctx context.Context) error {
	images, err := disk.Open(b.config.Load().ImagesDir)
	if err != nil {
		return err
	}
	defer func() {
		if err := errors.Join(b.clouds.close(), images.Close()); err != nil {
			b.log.Warn("Not closed in good order", "error", err)
		}
	}()
	if b.id, err = images.BuilderID(); err != nil {
		return err
	}
	b.images = images
	if err := images.Reclaim(ctx); err != nil {
		b.log.Error("Something is left of an earlier build", "error", err)
	}
	// The record in the tree outlives ctx: it tells of us until all has ended.
	rest, gone := context.WithCancel(context.WithoutCancel(ctx))
	defer gone()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.mirror.Run(ctx) })
	group.Go(func() error { return b.cancels.run(ctx) })
	group.Go(func() error {
		defer gone()
		return b.deps.Client.Serve(ctx, b.serve)
	})
	group.Go(func() error { return b.self.run(rest) })
	err = group.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// serve is the work of one session.
func (b *Builder) serve(ctx context.Context, s *recipe.Session) error {
	defer b.self.set(zkmodel.ComponentStopped)
	b.self.set(zkmodel.ComponentInitializing)
	if err := b.mirror.Barrier(ctx); err != nil {
		return err
	}
	store := zkmodel.NewStore(s, b.deps.Now)
	var err error
	if b.site, err = store.SiteID(ctx); err != nil {
		return err
	}
	b.self.set(zkmodel.ComponentRunning)
	return newLoop(b, store).run(ctx)
}
