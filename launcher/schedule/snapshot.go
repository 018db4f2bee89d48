package schedule

import (
	"fmt"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Snapshot is all that a decision looks at. Nothing in it is changed by one.
type Snapshot struct {
	Now time.Time
	// Lag is how far Now is behind ZooKeeper's clock; negative when it is early.
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
	// Judged says, by idle node, what was said of the build that it booted from, when that
	// is not to serve any more: the node is given to nobody, and deleted.
	Judged map[string]string
	// Evicted holds the idle nodes that are being marked for deletion.
	Evicted map[string]bool
	// Frozen holds the nodes of pools and labels that are left out of the
	// configuration: they are neither given away nor evicted.
	Frozen map[string]bool
	// Since tells from when on a request could be accepted that another launcher
	// is to take first, and Grace for how long we leave it to that launcher.
	Since map[string]time.Time
	Grace time.Duration
	// Away are the pools that left a moment ago and may come back.
	Away []Absence
	// Failed holds what launches of a request failed of in our pools, by request and
	// pool id, where that is not written down yet: a launcher that is away may serve it.
	Failed map[string]map[string]string
	// Tenants are the limits of tenants, over all providers.
	Tenants map[string]providers.Resources
	// Uses is what is in the clouds that do not tell their limits, or have refused.
	Uses map[string]*lesson.Use
	// Order is how equal pools are chosen from: configs.OrderSpread or OrderFill.
	Order string
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
	// Learned is what its cloud taught by refusing.
	Learned lesson.View
	// Unavailable says why nothing can be launched at the moment: the provider is not
	// open yet. "" when nothing speaks against it.
	Unavailable string
	// Paused says who has paused the provider, and why: it takes no request, also not with
	// a node that is ready. "" when nobody has.
	Paused string
	// Broken says that the provider cannot be used, and not for lack of time: the
	// pool is no candidate for any request, but does not decline any either.
	Broken bool
	// Mute says that its cloud did not answer the last creation that we know of.
	Mute bool
	// Idle says that the pool takes no requests at all (max-concurrency 0).
	Idle bool
	// Room is how many more launches the provider's max-concurrency leaves;
	// negative is unlimited.
	Room int
	// HoldsQuota tells that we hold the lock of the provider's quota: what is used
	// is known, and nobody else adds to it.
	HoldsQuota bool
	// Static says that its nodes are there already, and none can be launched.
	Static bool
	// Zones are the availability zones that new nodes are spread over; none
	// leaves the choice to the provider.
	Zones []string
	// Offers are the labels of the pool.
	Offers map[string]Offer
	// Frozen says of labels why they are left out of the configuration, and Rest
	// of all that the pool does not have, "" when they are not. Requests for them
	// wait until that is mended.
	Frozen map[string]string
	Rest   string
}

// frozen says why a request for labels cannot be judged, and whether it cannot: one of
// them is left out of the configuration, and the pool has, or may have, the others.
func (p *Pool) frozen(labels []string) (why string, so bool) {
	for _, l := range labels {
		reason, left := p.Frozen[l]
		if _, has := p.Offers[l]; !left && !has {
			if reason = p.Rest; reason == "" {
				return "", false
			}
			left = true
		}
		if left && !so {
			why, so = fmt.Sprintf("label %s of pool %s of %s is left out of the configuration: %s", l, p.Name, p.Provider, reason), true
		}
	}
	return why, so
}

// Doubt is why an idle machine is given to no request.
type Doubt struct {
	Why     string
	Missing bool // the last list lacked the machine, which may exist all the same
}

// sharesLimits reports whether the pool counts what all pools of its provider use.
func (p *Pool) sharesLimits() bool { return p.Cloud != nil || p.Learned.Lesson.Failures > 0 }

// Offer is one label in one pool.
type Offer struct {
	// Needs is what one node takes; nil while the provider has not told.
	Needs providers.Resources
	// Ready reports whether there is an image to boot from.
	Ready bool
	// Unread says why nobody can tell whether there is one; "" where that can be told.
	Unread string
	// Fault says why no node of this label can ever be made here; "" if one can.
	Fault string
}

// offers reports whether the pool has all labels.
func (p *Pool) offers(labels []string) bool {
	for _, l := range labels {
		if _, ok := p.Offers[l]; !ok {
			return false
		}
	}
	return true
}

// Earlier is the first of some times; a zero time is none.
func Earlier(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if first.IsZero() || (!t.IsZero() && t.Before(first)) {
			first = t
		}
	}
	return first
}

const (
	// MinReadyRequestor is who asks for nodes that are kept in stock; Nodepool's word.
	MinReadyRequestor = zkmodel.MinReadyRequestor
	// StaticLauncher is what the records of machines that exist already have for a
	// launcher; Nodepool's word.
	StaticLauncher = zkmodel.StaticLauncher
)

// SlotKey names a slot: a machine is its name, account and port.
func SlotKey(n configs.StaticNode, number int) string {
	return fmt.Sprintf("%s %s %d %d", n.Name, n.Username, n.ConnectionPort, number)
}

// RecordKey is the SlotKey of a node's record.
func RecordKey(n *zkmodel.Node) string {
	port, _ := n.ConnectionPort.Int()
	number, _ := n.Slot.Int()
	return fmt.Sprintf("%s %s %d %d", n.Hostname, n.Username, port, number)
}
