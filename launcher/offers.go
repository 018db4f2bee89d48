package launcher

import (
	"context"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A launcher that restarts is away for a moment, and nobody else may have its
// labels. So what each pool offered, Nodepool's too, is remembered in the tree, and
// for launcher-grace after it left our pools decline nothing that it could serve.

// newOffers follows what pools offered.
func newOffers(deps Deps) *recipe.Tree {
	return recipe.NewTree(deps.Client, zkmodel.OffersRoot, recipe.TreeOptions{
		Logger: deps.Logger.Named("offers"),
		Filter: func(p string) recipe.Interest {
			if p == zkmodel.OffersRoot {
				return recipe.Children
			}
			return recipe.Data
		},
	})
}

// knownOffers are those in the tree, by path.
func (l *Launcher) knownOffers() map[string]zkmodel.Offer {
	known := map[string]zkmodel.Offer{}
	l.offers.View(func(v recipe.View) {
		v.Each(zkmodel.OffersRoot, func(c recipe.Child) {
			e := c.Entry()
			if o, ok := zkmodel.DecodeOffer(e.Data, e.Stat); ok {
				known[zkmodel.OffersRoot+"/"+c.Name()] = o
			}
		})
	})
	return known
}

// followOffers follows them, and has everything looked at when one changes.
func (l *Launcher) followOffers(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.offers.Run(ctx) })
	group.Go(func() error {
		changes := l.offers.Subscribe(nil)
		defer changes.Close()
		for {
			changes.Take()
			l.notify()
			select {
			case <-changes.C():
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}
