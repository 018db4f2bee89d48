package canary

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// Tree is what a Keeper follows: a *zkmodel.Mirror.
type Tree interface {
	Image(name string) *zkmodel.Image
	Components(kind string) []*zkmodel.Component
	CanaryImages() [][2]string
}

// Keeper brings builds into service, within one session: each launcher does so, and what one
// has written first counts.
type Keeper struct {
	Book   *Book
	Store  *zkmodel.Store // that reads canaries, too
	Config *configs.Config
	Tree   Tree
	Jobs   *inflight.Jobs
	Now    func() time.Time
	Ahead  func() time.Duration
	Log    hclog.Logger

	trials map[place]*zkmodel.Canary
	due    time.Time
	live   map[place]Nodes // at the last decisions
	open   map[place]open
	watch  bool // whether these may be others when that changes
	begun  bool
	told   map[place]string // what was told of launchers that know no canaries
}

// open is since when nothing could be decided about a canary.
type open struct {
	trial *zkmodel.Canary
	since time.Time
}

// waited is for how long nothing could be decided about the canary of a place.
func (k *Keeper) waited(at place, now time.Time) time.Duration {
	o, is := k.open[at]
	if !is || k.trials[at] == nil || !sameTrial(o.trial, k.trials[at]) {
		return 0
	}
	return now.Sub(o.since)
}

// opened notes whether nothing can be decided about the canary of a place.
func (k *Keeper) opened(at place, is bool, now time.Time) {
	switch {
	case !is:
		delete(k.open, at)
	case k.waited(at, now) == 0:
		if k.open == nil {
			k.open = map[place]open{}
		}
		k.open[at] = open{k.trials[at], now}
	}
}

// Look does what is due, and tells when it may be something else although nothing changes.
// changed says that the tree may lead to something else than before. It does nothing where no
// image has a canary.
func (k *Keeper) Look(ctx context.Context, nodes []*zkmodel.Node, changed bool) time.Time {
	if !k.begun || changed {
		k.forget(ctx)
	}
	k.begun = true
	if !k.Config.HasCanary() {
		return time.Time{}
	}
	now := k.Now()
	live := k.Book.See(nodes, k.trials)
	changed = changed || k.watch && !maps.Equal(live, k.live)
	if !changed && (k.due.IsZero() || now.Before(k.due)) {
		return k.due
	}
	sights, trials := k.sights(now)
	if !maps.EqualFunc(trials, k.trials, sameTrial) {
		k.trials = trials
		live = k.Book.See(nodes, trials)
	}
	k.due, k.watch, k.live = time.Time{}, false, live
	for at, sight := range sights {
		sight.Live, sight.Waited = live[at], k.waited(at, now)
		d := Decide(sight)
		k.opened(at, d.Open, now)
		k.watch = k.watch || d.Watch
		if d.Again > 0 {
			k.due = schedule.Earlier(k.due, now.Add(d.Again))
		}
		if d.Kind != Nothing {
			task := inflight.Task("canary of " + at.image + " in " + at.provider)
			k.Jobs.Start(task, func() error { return k.do(ctx, sight) })
			k.due = schedule.Earlier(k.due, k.Jobs.Left(task))
		}
	}
	return k.due
}

// sights are what decisions look at, but for nodes, and the canaries that run.
func (k *Keeper) sights(now time.Time) (map[place]Sight, map[place]*zkmodel.Canary) {
	sights, trials := map[place]Sight{}, map[place]*zkmodel.Canary{}
	pools := k.Tree.Components(zkmodel.KindPool)
	for i := range k.Config.DiskImages {
		if k.Config.DiskImages[i].Canary == nil {
			continue
		}
		image := k.Tree.Image(k.Config.DiskImages[i].Name)
		for _, p := range k.Config.ProvidersOf(image.Name) {
			at := place{p.Name, image.Name}
			if c := image.Canary(p.Name); c != nil && c.Trial != nil {
				trials[at] = c
			}
			refused := zkmodel.CanariesRefused(pools, p.Name)
			k.tell(at, refused)
			sights[at] = Sight{
				Image: image, Provider: p.Name, Settings: k.Config.DiskImages[i].Canary, Refused: refused, Now: now.Add(k.Ahead()),
			}
		}
	}
	return sights, trials
}

// sameTrial reports whether two records have the same canary.
func sameTrial(a, b *zkmodel.Canary) bool {
	return a.Trial.BuildRef == b.Trial.BuildRef && a.Trial.Since == b.Trial.Since
}

// tell logs once of launchers that know no canaries.
func (k *Keeper) tell(at place, text string) {
	if k.told == nil {
		k.told = map[place]string{}
	}
	if text != k.told[at] && text != "" {
		k.Log.Warn("No build is a canary; a new one serves as soon as it is ready", "image", at.image, "provider", at.provider, "why", text)
	}
	k.told[at] = text
}

// forget removes what stands in the tree for images that have no canary any more, as soon as no
// other launcher of the provider has one, whose configuration may be older or newer. What
// no launcher follows is left to the one that tidies up (package singleton).
func (k *Keeper) forget(ctx context.Context) {
	pools := k.Tree.Components(zkmodel.KindPool)
	for _, one := range k.Tree.CanaryImages() {
		provider, image := one[0], one[1]
		if _, ours := k.Config.Provider(provider); !ours || k.Config.CanaryOf(image) != nil || zkmodel.CanaryIsOf(pools, provider, image) {
			continue
		}
		if _, configured := k.Config.DiskImage(image); !configured {
			continue // left out by a mistake, or another's
		}
		k.Jobs.Start(inflight.Task("canary of "+image+" in "+provider), func() error {
			k.Log.Info("Image has no canary any more; its newest build serves", "image", image, "provider", provider)
			return k.Store.ForgetCanaries(ctx, nil, provider, image)
		})
	}
}

// do looks again, as records and verdicts may be shown as of different moments, and carries
// the decision out.
func (k *Keeper) do(ctx context.Context, s Sight) error {
	var err error
	if s.Image, err = k.Store.Image(ctx, s.Image.Name); err != nil {
		return err
	}
	d, at := Decide(s), place{s.Provider, s.Image.Name}
	if d.Kind == Nothing {
		return nil
	}
	log := k.Log.With("image", at.image, "provider", at.provider, "build", d.Build)
	if d.Kind == Retreat {
		return k.retreat(ctx, log, at, d)
	}
	if d.Kind == Record {
		err = k.Store.BeginCanaries(ctx, d.Next)
	} else {
		err = k.Store.ChangeCanary(ctx, d.Next)
	}
	switch {
	case conflict(err):
		return nil // another was first, or has counted meanwhile
	case err != nil:
		return err
	}
	switch d.Kind {
	case Begin:
		log.Info("Build is the canary: a share of new nodes boots from it", "before", d.Next.Promoted.Build)
	case Promote:
		log.Info("Build serves all new nodes", "why", d.Why)
	case End:
		log.Warn("Build serves all new nodes without a decision because no other build can be used", "why", d.Why)
	case Ask:
		log.Warn("Canary has not served enough nodes in its time; a decision is asked for", "why", d.Why)
	case Drop:
		log.Info("Build is not the canary any more", "why", d.Why)
	case Nothing, Record, Retreat:
	}
	return nil
}

// retreat says of a canary that it is not to serve any more, so that all launchers go back
// to the build before.
func (k *Keeper) retreat(ctx context.Context, log hclog.Logger, at place, d Decision) error {
	settings := k.Config.CanaryOf(at.image)
	all, err := operate.New(k.Store, who).Judge(ctx, operate.Judgement{
		Image: at.image, Build: d.Build, Providers: []string{at.provider}, Kind: zkmodel.Retreated,
		Delete: settings.Delete, Reason: d.Why,
	})
	switch {
	case errors.Is(err, recipe.ErrVersion), errors.Is(err, zkmodel.ErrNotFound):
		return nil
	case err != nil:
		return err
	case len(all) == 0:
		return nil // another was first
	}
	log.Warn("Canary failed too often; all nodes boot from the build before", "why", d.Why)
	for _, c := range all[0].Deaf {
		log.Warn("A launcher heeds nothing that is said of builds, and goes on with the canary", "name", c.Hostname, "pool", c.PoolName)
	}
	return nil
}
