package launcher

import (
	"cmp"
	"fmt"
	"slices"

	"poolkeeper/zkmodel"
)

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
func candidates(registered []*zkmodel.Component, ours []*Pool, r *zkmodel.Request) []candidate {
	var able []candidate
	mine := map[string]bool{}
	for _, p := range ours {
		mine[p.ID] = true
		if !p.Broken && p.offers(r.NodeTypes) && !r.DeclinedByPool(p.ID) {
			able = append(able, candidate{id: p.ID, provider: p.Provider, priority: p.Priority, ours: true})
		}
	}
	for _, c := range registered {
		if c.Broken != nil || mine[c.ID] || r.DeclinedByPool(c.ID) || !supports(c, r.NodeTypes) {
			continue
		}
		able = append(able, candidate{
			id: c.ID, provider: c.ProviderName, priority: cmp.Or(c.Priority, defaultPriority), paused: c.Paused != nil && *c.Paused,
		})
	}
	return able
}

// supports tells whether a registered pool has all labels.
func supports(c *zkmodel.Component, labels []string) bool {
	for _, l := range labels {
		if !slices.Contains(c.SupportedLabels, l) {
			return false
		}
	}
	return true
}

// others says why pool p leaves a request to other pools, or "".
func others(p *Pool, r *zkmodel.Request, able []candidate) string {
	for _, c := range able {
		switch {
		case r.Provider != "" && r.Provider != p.Provider && c.provider == r.Provider:
			return fmt.Sprintf("it asks for provider %s", r.Provider)
		case !c.ours && !c.paused && c.priority < p.Priority:
			return fmt.Sprintf("a pool of provider %s has priority", c.provider)
		}
	}
	if len(able) > 0 && !p.offers(r.NodeTypes) {
		return "another pool has its labels"
	}
	return ""
}

// impossible says why pool p can never serve a request, or "".
func impossible(p *Pool, r *zkmodel.Request) string {
	if p.Disabled {
		return fmt.Sprintf("pool %s of %s is disabled (max-servers 0)", p.Name, p.Provider)
	}
	for _, label := range r.NodeTypes {
		offer, ok := p.Offers[label]
		switch {
		case !ok && len(r.DeclinedBy) > 0 && r.Reason != "":
			return r.Reason // of the pools that have it, and are of no use
		case !ok:
			return fmt.Sprintf("no pool has the label %s", label)
		case offer.Fault != "":
			return fmt.Sprintf("pool %s of %s cannot make label %s: %s", p.Name, p.Provider, label, offer.Fault)
		case !offer.Ready:
			return fmt.Sprintf("no image for label %s is ready in provider %s", label, p.Provider)
		}
	}
	return ""
}

// unknown says what pool p must learn before it can judge a request, or "".
func unknown(p *Pool, r *zkmodel.Request) string {
	for _, label := range r.NodeTypes {
		if p.Offers[label].Needs != nil {
			continue
		}
		if p.Hold != "" {
			return p.Hold
		}
		return fmt.Sprintf("provider %s has not told yet what label %s takes", p.Provider, label)
	}
	return ""
}

// declinedByAll tells whether every pool that is registered anywhere has
// declined the request, so that it has failed.
func declinedByAll(registered []*zkmodel.Component, r *zkmodel.Request) bool {
	for _, c := range registered {
		if c.Broken == nil && c.ID != "" && !r.DeclinedByPool(c.ID) {
			return false
		}
	}
	return true
}
