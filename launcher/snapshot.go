package launcher

import (
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Snapshot is all that a decision looks at. Nothing in it is changed by one.
type Snapshot struct {
	Now time.Time
	// Lag is how far Now is behind ZooKeeper's clock, as far as we know.
	Lag      time.Duration
	Requests []*zkmodel.Request
	Nodes    []*zkmodel.Node
	// Pools are those of this launcher, in the order of the configuration.
	Pools []*Pool
	// Registered are the pools of all launchers, this one's and Nodepool's too.
	Registered []*zkmodel.Component
	// Busy holds the requests that this launcher works on, or must leave alone
	// for a moment.
	Busy map[string]bool
	// Lost holds the pending requests that nobody has locked.
	Lost map[string]bool
	// Evicted holds the idle nodes that are being marked for deletion.
	Evicted map[string]bool
	// Since tells from when on a request could be accepted that another launcher
	// is to take first, and Grace for how long we leave it to that launcher.
	Since map[string]time.Time
	Grace time.Duration
	// Tenants are the limits of tenants, over all providers.
	Tenants map[string]providers.Resources
}

// Pool is one pool of a provider, as far as this launcher serves it.
type Pool struct {
	ID       string // the launcher id that requests are declined by
	Provider string
	Name     string
	Priority int // lower is preferred
	Disabled bool
	// Limits of the pool. A resource that is absent is unlimited.
	Limits providers.Resources
	// Cloud are the provider's limits; nil when the pool ignores them.
	Cloud providers.Resources
	// Hold says why nothing can be launched at the moment: the provider is not
	// open yet, or its cloud has just refused. "" when nothing speaks against it.
	Hold string
	// Broken says that the provider cannot be used, and not for lack of time: the
	// pool is no candidate for any request, but does not decline any either.
	Broken bool
	// Idle says that the pool takes no requests at all (max-concurrency 0).
	Idle bool
	// Room is how many more launches the provider's max-concurrency leaves;
	// negative is unlimited.
	Room int
	// Counted tells that we hold the lock of the provider's quota: what is used
	// is known, and nobody else adds to it.
	Counted bool
	// Fixed says that its nodes are there already, and none can be launched.
	Fixed bool
	// Zones are the availability zones that new nodes are spread over; none
	// leaves the choice to the provider.
	Zones []string
	// Offers are the labels of the pool.
	Offers map[string]Offer
}

// Offer is one label in one pool.
type Offer struct {
	// Needs is what one node takes; nil while the provider has not told.
	Needs providers.Resources
	// Ready tells whether there is an image to boot from.
	Ready bool
	// Fault says why no node of this label can ever be made here; "" if one can.
	Fault string
}

// offers tells whether the pool has all labels.
func (p *Pool) offers(labels []string) bool {
	for _, l := range labels {
		if _, ok := p.Offers[l]; !ok {
			return false
		}
	}
	return true
}
