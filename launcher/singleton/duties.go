package singleton

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Changes reports that something may be different; a recipe.Subscription.
type Changes interface {
	C() <-chan struct{}
	Take() []string
}

// Cloud is what is done with one provider of this launcher.
type Cloud interface {
	// AwaitOpen returns when the provider is open, or ctx has ended.
	AwaitOpen(ctx context.Context)
	// Exists reports whether its machines exist already; known when it is open.
	Exists() bool
	LeakCloud
	LimitsCloud
	StaticCloud
}

// Duties is what is done once, however many launchers there are. For a provider that
// is the search for leaks and the question for its limits, or the slots of a static
// one; for a label the stock of ready nodes. Each is a share of one partition, which spreads
// them evenly among the launchers that have the provider or the label, so it has
// one worker at a time, and another when that one dies. What concerns all
// launchers alike, whatever they serve, is done by the one that they elect.
type Duties struct {
	Client *recipe.Client
	Config *configs.Config
	// Member names this launcher among all.
	Member string
	Mirror *zkmodel.Mirror
	// LimitsTree follows the limits of providers, OfferView the offers of pools.
	LimitsTree *recipe.Tree
	OfferView  interface {
		OfferView
		WaitSynced(ctx context.Context) error
	}
	Clouds map[string]Cloud // by provider
	// Stocked are the labels that this launcher keeps in stock.
	Stocked  []configs.Label
	Pools    StockPools
	Machines StaticMachines
	// Backing looks after the backing nodes of a provider, until ctx ends; nil looks after none.
	Backing func(ctx context.Context, provider string, store *zkmodel.Store) error
	// Rival says who else has all nodes of a provider for himself as long as he is there; "" is
	// nobody.
	Rival func(provider string) string
	// Hold notes that a share is ours, until what it returns is called.
	Hold func(path string) (release func())
	// Leaked is called for each leaked machine that was deleted.
	Leaked func(provider string)
	// Has is told of each duty whether it is ours: at first it is not. It is one of "tidy",
	// "offers", "provider" and "stock", of a provider or a label, or of all.
	Has func(duty, of string, has bool)
	// Ahead is how far ZooKeeper's clock is ahead of Now.
	Ahead  func() time.Duration
	Now    func() time.Time
	Resync time.Duration
	Log    hclog.Logger
}

// Run takes part in all duties until ctx ends.
func (d *Duties) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	shares := map[string]share{}
	take := func(duty, of, dir string, work share) {
		d.Has(duty, of, false)
		shares[strings.TrimPrefix(dir, zkmodel.DutiesPath+"/")] = func(ctx context.Context, store *zkmodel.Store, h *recipe.Held) error {
			d.Has(duty, of, true)
			defer d.Has(duty, of, false)
			return work(ctx, store, h)
		}
	}
	d.Has("tidy", "", false)
	d.Has("offers", "", false)
	group.Go(func() error {
		foreign := NewForeignLocks(d.Mirror, d.Log, d.Now)
		var canaries *LeftCanaries // of one election
		var left *Cleanup          // the same
		var of *recipe.Held
		lead := func(ctx context.Context, h *recipe.Held) error {
			tree := leaderTree{lead: h, mirror: d.Mirror}
			foreign.Pass(ctx, tree)
			if h != of {
				canaries, of = NewLeftCanaries(d.Mirror, d.Config.FrozenUpload, d.Resync, d.Log, d.Now), h
				left = NewCleanup(d.Mirror, tree, tree) // behind the fence of our leadership
				left.Frozen = d.Config.FrozenProvider
			}
			err := canaries.Pass(ctx, tree)
			return errors.Join(err, left.Pass(ctx))
		}
		cleanup := recipe.Periodic{Every: d.Resync, Task: lead, Logger: d.Log.Named("duties")}
		return d.elect(ctx, "tidy", zkmodel.TidyElectionPath, cleanup.Lead)
	})
	group.Go(func() error { return d.elect(ctx, "offers", zkmodel.OfferElectionPath, d.keepOffers) })
	for _, p := range d.Config.Providers {
		if d.Config.FrozenProvider(p.Name) != "" {
			continue // its machines are left as they are, but for those that are given up
		}
		take("provider", p.Name, zkmodel.ProviderDutyPath(p.Name), func(ctx context.Context, store *zkmodel.Store, h *recipe.Held) error {
			cloud := d.Clouds[p.Name]
			if cloud.AwaitOpen(ctx); ctx.Err() != nil {
				return context.Cause(ctx) // it has not opened
			}
			if cloud.Exists() {
				return d.keepSlots(ctx, store, p)
			}
			return d.watchProvider(ctx, store, h, p.Name)
		})
	}
	for _, label := range d.Stocked {
		take("stock", label.Name, zkmodel.LabelDutyPath(label.Name), func(ctx context.Context, store *zkmodel.Store, _ *recipe.Held) error {
			return d.keepStock(ctx, store, label)
		})
	}
	group.Go(func() error { return d.work(ctx, shares) })
	return group.Wait()
}

// elect does something whenever this launcher is elected.
func (d *Duties) elect(ctx context.Context, duty, path string, lead func(context.Context, *recipe.Held) error) error {
	return recipe.NewElection(d.Client, path, d.Member).Run(ctx, func(ctx context.Context, h *recipe.Held) error {
		d.Has(duty, "", true)
		defer d.Has(duty, "", false)
		defer d.Hold(path)()
		return lead(ctx, h)
	})
}

// share is the work of a share while it is ours.
type share func(context.Context, *zkmodel.Store, *recipe.Held) error

// work takes part in the partition of shares, and works those that fall to this launcher.
func (d *Duties) work(ctx context.Context, shares map[string]share) error {
	p := recipe.NewPartition(d.Client, zkmodel.DutiesPath, d.Member, slices.Sorted(maps.Keys(shares)), recipe.PartitionOptions{
		Logger: d.Log.Named("duties"),
	})
	return p.Run(ctx, func(ctx context.Context, name string, h *recipe.Held) error {
		defer d.Hold(zkmodel.DutiesPath + "/" + name)()
		if err := d.Mirror.WaitSynced(ctx); err != nil {
			return err
		}
		if err := shares[name](ctx, zkmodel.NewStore(h.Session(), d.Now), h); err != nil {
			return err
		}
		return context.Cause(ctx) // why it has ended
	})
}

func (d *Duties) records(store *zkmodel.Store) nodeRecords {
	return nodeRecords{store: store, mirror: d.Mirror, now: d.Now}
}

// keepSlots keeps the machines of a static provider registered.
func (d *Duties) keepSlots(ctx context.Context, store *zkmodel.Store, p configs.Provider) error {
	nodes := d.Mirror.SubscribeNodes()
	defer nodes.Close()
	return NewStatic(d.Config, p, d.Clouds[p.Name], d.Mirror, d.Machines, d.records(store), d.Log).Run(ctx, nodes, d.Resync)
}

// watchProvider looks for leaks in a provider and asks for its limits.
func (d *Duties) watchProvider(ctx context.Context, store *zkmodel.Store, h *recipe.Held, provider string) error {
	site, err := store.SiteID(ctx)
	if err != nil {
		return err
	}
	cloud := d.Clouds[provider]
	if sited, ok := cloud.(providers.Sited); ok { // no session of the launcher may have told it yet
		sited.OfInstallation(site)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		deleted := func() { d.Leaked(provider) }
		now := func() time.Time { return d.Now().Add(d.Ahead()) } // others' findings count, too
		memory := leakMemory{store: store, duty: h, provider: provider}
		leaks := NewLeaks(provider, site, cloud, d.Mirror, d.records(store), memory, deleted, d.Pools.Deciding, d.Log, now)
		leaks.Rival = func() string { return d.Rival(provider) }
		return leaks.Run(ctx, d.Resync)
	})
	if d.Backing != nil {
		group.Go(func() error { return d.Backing(ctx, provider, store) })
	}
	group.Go(func() error {
		changes := d.LimitsTree.Subscribe(path.Base)
		defer changes.Close()
		return NewLimits(provider, site, cloud, d.LimitsTree, d.Mirror, store, d.Log, d.Now).Run(ctx, changes)
	})
	return group.Wait()
}

// keepStock keeps the stock of a label.
func (d *Duties) keepStock(ctx context.Context, store *zkmodel.Store, label configs.Label) error {
	nodes, requests, images := d.Mirror.SubscribeNodes(), d.Mirror.SubscribeRequests(), d.Mirror.SubscribeImages()
	defer nodes.Close()
	defer requests.Close()
	defer images.Close()
	stock := NewStock(label.Name, label.MinReady, d.Mirror, store, store.Session(), d.Pools, d.Log, d.Now)
	return stock.Run(ctx, nodes, requests, images)
}

// keepOffers is done by the leader of another election.
func (d *Duties) keepOffers(ctx context.Context, h *recipe.Held) error {
	if err := errors.Join(d.Mirror.WaitSynced(ctx), d.OfferView.WaitSynced(ctx)); err != nil {
		return err
	}
	pools := d.Mirror.SubscribeComponents()
	defer pools.Close()
	now := func() time.Time { return d.Now().Add(d.Ahead()) }
	store := zkmodel.NewStore(h.Session(), d.Now)
	return NewOffers(d.Config.LauncherGrace, d.Mirror, d.OfferView, store, now, d.Log).Run(ctx, pools, d.Resync)
}
