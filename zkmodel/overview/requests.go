package overview

import (
	"cmp"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
)

// Cause is why a request waits, as far as the tree tells. Those that launchers tell in
// poolkeeper_launcher_oldest_request_seconds have the same name.
type Cause string

// The causes.
const (
	NoPool    Cause = "no-pool"   // no registered pool has its labels
	Provider  Cause = "provider"  // the providers that could serve it cannot be used, or fail
	Paused    Cause = "paused"    // a user has paused the launchers, or the providers, that could serve it
	NoImage   Cause = "image"     // no image is ready in a provider that could serve it
	Tenant    Cause = "tenant"    // its tenant's limit
	Quota     Cause = "quota"     // pools or providers that could serve it are full
	Undecided Cause = "undecided" // none of these: it was just asked for, or a launcher knows more
	Launching Cause = "launching" // its nodes are being made
)

// Means says a cause in words.
func (c Cause) Means() string {
	return map[Cause]string{
		NoPool: "no pool has their labels", Provider: "the provider fails", Paused: "launchers or providers are paused",
		NoImage: "no image is ready", Tenant: "their tenant is at its limit", Quota: "pools are full",
		Undecided: "not decided yet", Launching: "nodes are being launched",
	}[c]
}

// Waiting are the requests that wait.
type Waiting struct {
	Count  int    `json:"count"`
	Causes []Wait `json:"causes"`

	why map[string]Cause // by request
}

// CauseOf is why a request waits; "" for one that does not.
func (w *Waiting) CauseOf(request string) Cause { return w.why[request] }

// Wait is a cause, and how many requests wait for it.
type Wait struct {
	Cause  Cause    `json:"cause"`
	Count  int      `json:"count"`
	Oldest int64    `json:"oldest_seconds"`
	ID     string   `json:"request"` // the oldest
	Labels []string `json:"labels"`  // of that one
	Reason string   `json:"reason,omitempty"`
}

// waiting counts the requests that wait, those of launchers for their stock left out; the
// cause that concerns most comes first.
func (t *Tree) waiting(cfg *configs.Config, images map[string]*zkmodel.Image, c *capacities) Waiting {
	w := Waiting{Causes: []Wait{}, why: map[string]Cause{}}
	tenants := map[string]int{}
	for _, n := range t.Nodes {
		tenants[n.TenantName]++
	}
	for _, r := range t.Requests {
		if r.Broken != nil || r.Requestor == zkmodel.MinReadyRequestor || r.State != zkmodel.RequestRequested && r.State != zkmodel.RequestPending {
			continue
		}
		cause, reason := t.cause(cfg, images, c, tenants, r)
		age := int64(max(0, t.Now.Sub(r.Stat.Ctime)) / time.Second)
		w.Count++
		w.why[r.ID] = cause
		at := slices.IndexFunc(w.Causes, func(w Wait) bool { return w.Cause == cause })
		if at < 0 {
			at, w.Causes = len(w.Causes), append(w.Causes, Wait{Cause: cause, Oldest: -1})
		}
		one := &w.Causes[at]
		one.Count++
		if age > one.Oldest {
			one.Oldest, one.ID, one.Labels, one.Reason = age, r.ID, r.NodeTypes, cmp.Or(reason, r.Reason)
		}
	}
	slices.SortStableFunc(w.Causes, func(a, b Wait) int { return cmp.Compare(b.Oldest, a.Oldest) })
	return w
}

// cause says why a request waits: for the pool that may serve it soonest.
func (t *Tree) cause(cfg *configs.Config, images map[string]*zkmodel.Image, c *capacities, tenants map[string]int, r *zkmodel.Request) (cause Cause, reason string) {
	if r.State == zkmodel.RequestPending {
		if why := t.launchesFail(r); why != "" {
			return Provider, why
		}
		return Launching, ""
	}
	able := false
	why := map[Verdict]string{}
	for _, p := range t.Pools {
		if p.Broken != nil || r.DeclinedByPool(p.ID) || !p.Has(r.NodeTypes) || r.Provider != "" && r.Provider != p.ProviderName {
			continue
		}
		able = true
		verdict, text := t.verdict(cfg, images, c, r, p)
		if had, known := why[verdict]; !known || had == "" {
			why[verdict] = text
		}
	}
	if !able {
		return NoPool, r.Reason
	}
	limit, limited := cfg.TenantLimit(r.TenantName)
	limited = limited && limit.Limits[instances] > 0 && tenants[r.TenantName] >= limit.Limits[instances]
	for _, one := range []struct {
		verdict Verdict
		cause   Cause
	}{
		{MayServe, Undecided}, {PoolFull, Quota}, {LaunchFails, Provider}, {Undeleted, Provider}, {ProviderDown, Provider}, {LacksImage, NoImage}, {PoolPaused, Paused},
	} {
		text, is := why[one.verdict]
		switch {
		case !is:
		case limited && (one.cause == Undecided || one.cause == Quota):
			return Tenant, ""
		default:
			return one.cause, text
		}
	}
	return Undecided, ""
}

// launchesFail returns why the launches for a pending request fail; "" when they do not.
func (t *Tree) launchesFail(r *zkmodel.Request) string {
	for _, n := range t.Nodes {
		if n.Broken != nil || n.AllocatedTo != r.ID {
			continue
		}
		for _, p := range t.Pools {
			if p.Broken == nil && p.ProviderName == n.Provider && p.PoolName == n.Pool {
				if why := cmp.Or(p.Trouble, p.Fails(n.Type)); why != "" {
					return "provider " + p.ProviderName + ": " + why
				}
			}
		}
	}
	return ""
}

// pausedBy returns why a user has paused the launcher of a pool, or its provider; "" when none has.
func (t *Tree) pausedBy(cfg *configs.Config, p *zkmodel.Component) string {
	for n := range t.Daemons {
		if d := &t.Daemons[n]; d.Kind == zkmodel.KindLauncher && d.Hostname == p.Hostname && d.State == zkmodel.ComponentPaused {
			return listing.Words(": ", "the launcher on "+d.Hostname+" is paused", d.Reason)
		}
	}
	if section, known := cfg.Provider(p.ProviderName); known && section.MaxConcurrency == 0 {
		return "its provider takes no requests (max-concurrency: 0)"
	}
	return p.Reason
}

// lacksImage reports whether a pool has no ready image for one of some labels, as far as
// the configuration tells.
func lacksImage(cfg *configs.Config, images map[string]*zkmodel.Image, p *zkmodel.Component, labels []string) bool {
	for _, label := range labels {
		for _, offer := range cfg.PoolsOf(label) {
			if offer.Provider.Name != p.ProviderName || offer.Pool.Name != p.PoolName || offer.Label == nil || offer.Label.DiskImage == "" {
				continue
			}
			image := images[offer.Label.DiskImage]
			if image == nil || image.Unread == nil && image.Serving(p.ProviderName, zkmodel.Suspect) == nil {
				return true
			}
		}
	}
	return false
}

// explain says in items about requests that wait what they wait for. A tenant at its limit
// is no reason to wake anybody.
func (w *Waiting) explain(items []attention.Item) {
	for n := range items {
		i := &items[n]
		if cause, waits := w.why[i.Name]; waits && i.Kind == attention.RequestWaits {
			i.Why = cmp.Or(i.Why, cause.Means())
			i.Urgent = i.Urgent && cause != Tenant
		}
	}
}
