package singleton

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// offerMemory is how long the offer of a pool that left is remembered at least.
const offerMemory = time.Hour

// OfferPools shows the pools that are registered.
type OfferPools interface {
	Components(kind string) []*zkmodel.Component
	Barrier(ctx context.Context) error
}

// OfferView shows what is remembered.
type OfferView interface {
	// Known are the offers in the tree, by path.
	Known() map[string]zkmodel.Offer
	Barrier(ctx context.Context) error
}

// OfferRecords is where offers are remembered.
type OfferRecords interface {
	SaveOffer(ctx context.Context, o zkmodel.Offer) error
	ForgetOffer(ctx context.Context, o zkmodel.Offer) error
}

// Offers writes down what pools offer and when they leave: a launcher that restarts
// is away for a moment, and nobody else may have its labels.
type Offers struct {
	grace   time.Duration
	pools   OfferPools
	view    OfferView
	records OfferRecords
	now     func() time.Time // ZooKeeper's clock
	log     hclog.Logger
}

// NewOffers makes an Offers. grace is for how long a launcher that left is awaited,
// now is ZooKeeper's clock.
func NewOffers(grace time.Duration, pools OfferPools, view OfferView, records OfferRecords, now func() time.Time, log hclog.Logger) *Offers {
	return &Offers{grace: grace, pools: pools, view: view, records: records, now: now, log: log}
}

// Run writes them down until ctx ends, at each change of the pools; and every so
// often, as offers grow old without telling.
func (o *Offers) Run(ctx context.Context, pools Changes, every time.Duration) error {
	tick := clock.NewTicker(ctx, every)
	defer tick.Stop()
	for {
		pools.Take()
		if err := o.pass(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("Cannot remember which pools have left; the next change or look tries again", "error", err)
		}
		select {
		case <-pools.C():
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pass brings the records in line with the pools that are registered.
func (o *Offers) pass(ctx context.Context) error {
	changes := func() (changed, old []zkmodel.Offer) {
		forget := o.now().Add(-max(o.grace, offerMemory))
		return changedOffers(o.view.Known(), o.pools.Components(zkmodel.KindPool), forget)
	}
	if changed, old := changes(); len(changed)+len(old) == 0 {
		return nil // as it is with most changes of the pools
	}
	if err := errors.Join(o.view.Barrier(ctx), o.pools.Barrier(ctx)); err != nil {
		return err
	}
	changed, old := changes()
	var errs []error
	for _, c := range changed {
		errs = append(errs, o.records.SaveOffer(ctx, c))
	}
	for _, c := range old {
		errs = append(errs, o.records.ForgetOffer(ctx, c))
	}
	return errors.Join(errs...)
}

// changedOffers lists the records that are to be written, and those to be forgotten:
// of pools that left before a time.
func changedOffers(known map[string]zkmodel.Offer, registered []*zkmodel.Component, forget time.Time) (changed, old []zkmodel.Offer) {
	now := map[string]zkmodel.Offer{}
	for _, c := range registered {
		if c.Broken != nil || c.ProviderName == "" {
			continue
		}
		o := zkmodel.Offer{Hostname: c.Hostname, Provider: c.ProviderName, Pool: c.PoolName}
		o.Labels = slices.Concat(now[o.Path()].Labels, c.SupportedLabels, c.TroubledLabels) // of two launchers on one host
		if len(o.Labels) == 0 {
			o.Labels = known[o.Path()].Labels // of an older release whose provider is broken; when it works it has them again
		}
		slices.Sort(o.Labels)
		o.Labels = slices.Compact(o.Labels)
		now[o.Path()] = o
	}
	for path, o := range now {
		if was, there := known[path]; !there || !was.Same(o) {
			changed = append(changed, o)
		}
	}
	for path, o := range known {
		_, here := now[path]
		switch {
		case here:
		case !o.Left:
			o.Left = true
			changed = append(changed, o)
		case o.Stat.Mtime.Before(forget):
			old = append(old, o)
		}
	}
	return changed, old
}
