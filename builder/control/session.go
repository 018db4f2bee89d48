package control

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/presence"
	"poolkeeper/builder/trial"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Run decides and acts until ctx ends, over as many sessions as that takes, for the
// files in images, whose owner is called id. It returns nil when ctx has ended.
//
// Errors: ErrSameID.
func (c *Control) Run(ctx context.Context, images *disk.Images, id string) error {
	c.images, c.id = images, id
	// The record in the tree outlives ctx: it tells of us until all has ended.
	rest, gone := context.WithCancel(context.WithoutCancel(ctx))
	defer gone()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Mirror.Run(ctx) })
	group.Go(func() error { return c.cancels.run(ctx) })
	group.Go(func() error {
		defer gone()
		return c.Client.Serve(ctx, c.serve)
	})
	group.Go(func() error { return c.Self.Run(rest) })
	err := group.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// serve is the work of one session.
func (c *Control) serve(ctx context.Context, s *recipe.Session) error {
	defer c.Self.Set(zkmodel.ComponentStopped)
	c.Self.Set(zkmodel.ComponentInitializing)
	if err := c.Mirror.Barrier(ctx); err != nil {
		return err
	}
	c.readClock(ctx, s)
	store := zkmodel.NewStore(s, c.clock.now)
	site, err := store.SiteID(ctx)
	if err != nil {
		return err
	}
	session := Session{Store: store, Images: c.images, BuilderID: c.id, Site: site}
	for {
		err := c.work(ctx, session)
		if !errors.Is(err, recipe.ErrFenceLost) || ctx.Err() != nil {
			return err
		}
		c.Log.Warn("The lock of our builder id was removed; work ends and begins again", "error", err)
	}
}

// work is what is done under our builder id.
func (c *Control) work(ctx context.Context, s Session) error {
	held, err := presence.Identify(ctx, s.Store.Session(), presence.Owner{ID: s.BuilderID, Host: c.FQDN, ImagesDir: s.Images.Dir()}, c.Log, c.waits)
	if err != nil {
		return err
	}
	defer actions.Release(ctx, held)
	ctx, unbind := held.Bind(ctx)
	defer unbind()
	c.Self.Set(zkmodel.ComponentRunning)
	s.Trials = trial.New(ctx, trial.Deps{
		Store: s.Store, Mirror: c.Mirror, Config: c.Config, Snapshot: c.Snapshot, Metrics: c.Metrics, Log: c.Log,
		Record: func(u *zkmodel.Upload) (*zkmodel.Validation, error) {
			return trial.WantedFor(c.Config(), c.Mirror.Image(u.Image), u)
		},
		Now: c.clock.now, FQDN: c.FQDN, Step: c.Step, Deciding: c.Deciding, Tracer: c.Tracer,
	})
	return newLoop(c, s).run(ctx)
}

// waits says, until nil, why work cannot begin in a session.
func (c *Control) waits(why error) {
	if why == nil {
		c.blocked.Store(nil)
		c.Self.Withdraw(c.fitness.reason())
		return
	}
	c.Self.Withdraw(why.Error())
	c.blocked.Store(&why)
}
