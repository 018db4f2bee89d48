package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"poolkeeper/zkmodel"
)

// DefaultPriority is that of a pool which has none.
const DefaultPriority = 100

// candidate is a pool, of any launcher, that could serve a request.
type candidate struct {
	id       string
	provider string
	priority int
	ours     bool
	paused   bool
}

// candidates are the pools that have all labels of a request and have not
// declined it. Those whose provider is broken have no labels. Ours count although the tree may not show them yet.
// In a provider that may yet make a machine for the request no launcher asks for another: such pools count as paused.
func (a *assignment) candidates(r *zkmodel.Request) []candidate {
	able := make([]candidate, 0, len(a.Pools))
	for _, p := range a.Pools {
		if _, frozen := p.frozen(r.NodeTypes); !frozen && !p.Broken && p.offers(r.NodeTypes) && !r.DeclinedByPool(p.ID) {
			able = append(able, candidate{id: p.ID, provider: p.Provider, priority: p.Priority, ours: true, paused: p.Paused != "" || a.owing[r.ID][p.Provider] != ""})
		}
	}
	for _, c := range a.Registered {
		if c.Broken != nil || a.mine[c.ID] || r.DeclinedByPool(c.ID) || !supports(c, r.NodeTypes) {
			continue
		}
		able = append(able, candidate{
			id: c.ID, provider: c.ProviderName, priority: cmp.Or(c.Priority, DefaultPriority), paused: c.Paused != nil && *c.Paused || a.owing[r.ID][c.ProviderName] != "",
		})
	}
	return able
}

// supports reports whether a registered pool has all labels.
func supports(c *zkmodel.Component, labels []string) bool {
	for _, l := range labels {
		if !slices.Contains(c.SupportedLabels, l) {
			return false
		}
	}
	return true
}

// elsewhere says why a request is no business of pool p's, and whether it is not.
func (a *assignment) elsewhere(p *Pool, r *zkmodel.Request, able []candidate) (why string, so bool) {
	for _, c := range able {
		switch {
		case r.Provider != "" && r.Provider != p.Provider && c.provider == r.Provider:
			return fmt.Sprintf("it asks for provider %s", r.Provider), true
		case !c.ours && !c.paused && c.priority < p.Priority:
			return fmt.Sprintf("a pool of provider %s has priority", c.provider), true
		}
	}
	if p.offers(r.NodeTypes) {
		return "", false
	}
	if len(able) > 0 {
		return "another pool has its labels", true
	}
	// Only pools have them that cannot launch at the moment: to decline it would say
	// that nobody has them.
	why = zkmodel.WaitsForProvider(a.Registered, r)
	return why, why != ""
}

// impossible says why pool p can never serve a request, and whether it cannot. That an image is lacking, which may
// change, is said only where nothing else is in the way.
func impossible(p *Pool, r *zkmodel.Request) (no never, so bool) {
	if p.Disabled {
		return never{said: said{p, fmt.Sprintf("pool %s of %s is disabled (max-servers 0)", p.Name, p.Provider)}}, true
	}
	for _, label := range r.NodeTypes {
		offer, ok := p.Offers[label]
		switch {
		case !ok && len(r.DeclinedBy) > 0 && r.Reason != "":
			return never{said: said{p, r.Reason}}, true // of the pools that have it, and are of no use
		case !ok:
			return never{said: said{p, fmt.Sprintf("no pool has the label %s", label)}}, true
		case offer.Fault != "":
			return never{said: said{p, fmt.Sprintf("pool %s of %s cannot make label %s: %s", p.Name, p.Provider, label, offer.Fault)}}, true
		case !offer.Ready && offer.Unread == "" && !so:
			no, so = never{said{p, fmt.Sprintf("no image for label %s is ready in provider %s", label, p.Provider)}, true}, true
		}
	}
	return no, so
}

// unknown says what pool p must learn before it can judge a request, and whether it
// must.
func unknown(p *Pool, r *zkmodel.Request) (why string, so bool) {
	for _, label := range r.NodeTypes {
		if offer := p.Offers[label]; !offer.Ready && offer.Unread != "" {
			return fmt.Sprintf("nobody can tell whether an image for label %s is ready in provider %s: %s", label, p.Provider, offer.Unread), true
		}
		if p.Offers[label].Needs != nil {
			continue
		}
		if p.Unavailable != "" {
			return p.Unavailable, true
		}
		return fmt.Sprintf("provider %s has not told yet what label %s takes", p.Provider, label), true
	}
	return "", false
}

// DeclinedByAll reports whether every pool that is registered anywhere has
// declined the request, so that it has failed.
func DeclinedByAll(registered []*zkmodel.Component, r *zkmodel.Request) bool {
	for _, c := range registered {
		if c.Broken == nil && c.ID != "" && !r.DeclinedByPool(c.ID) {
			return false
		}
	}
	return true
}
