package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// RequestExplained says where a request stands, why, and what happens next: request-explain.
type RequestExplained struct {
	Version   string     `json:"version"`
	Request   string     `json:"request"`
	Event     string     `json:"event_id,omitempty"` // Zuul's
	State     string     `json:"state"`
	Since     *time.Time `json:"since,omitempty"` // of the state
	Asked     *time.Time `json:"asked,omitempty"` // when it was made
	Age       int64      `json:"age_seconds"`
	Labels    []string   `json:"labels"`
	Requestor string     `json:"requestor,omitempty"`
	Tenant    string     `json:"tenant,omitempty"`
	Provider  string     `json:"provider,omitempty"` // the only one that it wants
	Priority  string     `json:"priority"`
	Relative  int        `json:"relative_priority"`
	// Before are the requests that wait for one of its labels and are served sooner.
	Before int             `json:"before"`
	Cause  Cause           `json:"cause,omitempty"` // of its waiting, as in status
	Why    string          `json:"why,omitempty"`
	Locks  []string        `json:"locked_by,omitempty"` // the first has it
	Pools  []PoolVerdict   `json:"pools"`
	Nodes  []NodeExplained `json:"nodes"`
	Next   string          `json:"next"`
}

// PoolVerdict is how one pool stands to a request.
type PoolVerdict struct {
	Provider string  `json:"provider"`
	Pool     string  `json:"pool"`
	Launcher string  `json:"launcher,omitempty"` // that has it; none where no launcher that runs does
	Verdict  Verdict `json:"verdict"`
	Why      string  `json:"why,omitempty"`
}

// Verdict is a stable word for that.
type Verdict string

// The verdicts.
const (
	Declined     Verdict = "declined"
	Unserved     Verdict = "not-served" // configured, and no launcher that runs has it
	Elsewhere    Verdict = "other-provider"
	LacksLabel   Verdict = "lacks-label"
	ProviderDown Verdict = "provider"
	PoolPaused   Verdict = "paused"
	LacksImage   Verdict = "image"
	PoolFull     Verdict = "quota"
	LaunchFails  Verdict = "launch-fails"
	Undeleted    Verdict = "undeleted" // nodes whose deletion is not confirmed take its room
	MayServe     Verdict = "may-serve"
)

// ExplainRequest explains a request of the tree; locks are in line for its lock.
//
// Errors: zkmodel.ErrNotFound, with the ids that may have been meant.
func (t *Tree) ExplainRequest(cfg *configs.Config, id string, locks []recipe.Contender) (*RequestExplained, error) {
	at := slices.IndexFunc(t.Requests, func(r *zkmodel.Request) bool { return r.ID == id })
	if at < 0 {
		var ids []string
		for _, r := range t.Requests {
			ids = append(ids, r.ID)
		}
		return nil, fmt.Errorf("request %s %w%s", id, zkmodel.ErrNotFound, configs.Similar(id, ids))
	}
	r := t.Requests[at]
	if r.Broken != nil {
		return nil, fmt.Errorf("request %s: %w", id, r.Broken)
	}
	e := &RequestExplained{
		Version: Version, Request: id, Event: r.EventID, State: string(r.State), Since: when(r.StateTime.Time()), Asked: when(r.Stat.Ctime),
		Age: int64(max(0, t.Now.Sub(r.Stat.Ctime)) / time.Second), Labels: slices.Clone(r.NodeTypes), Requestor: r.Requestor, Tenant: r.TenantName,
		Provider: r.Provider, Priority: r.Priority(), Relative: r.RelativePriority, Why: r.Reason, Locks: inLine(locks),
		Pools: []PoolVerdict{}, Nodes: []NodeExplained{},
	}
	for _, n := range t.Nodes {
		if n.Broken == nil && (n.AllocatedTo == id || slices.Contains(r.Nodes, n.ID)) {
			e.Nodes = append(e.Nodes, t.node(cfg, n, nil))
		}
	}
	if r.State == zkmodel.RequestRequested || r.State == zkmodel.RequestPending {
		e.waits(t, cfg, r)
	}
	e.Next = e.next(r)
	return e, nil
}

// waits says why a request waits.
func (e *RequestExplained) waits(t *Tree, cfg *configs.Config, r *zkmodel.Request) {
	images := map[string]*zkmodel.Image{}
	for _, image := range t.Images {
		images[image.Name] = image
	}
	tenants := map[string]int{}
	for _, n := range t.Nodes {
		tenants[n.TenantName]++
	}
	c := t.capacity(cfg)
	cause, why := t.cause(cfg, images, c, tenants, r)
	e.Cause, e.Why = cause, cmp.Or(why, r.Reason, cause.Means())
	if cause == Tenant {
		limit, _ := cfg.TenantLimit(r.TenantName)
		e.Why = fmt.Sprintf("tenant %s has %d nodes of %d", r.TenantName, tenants[r.TenantName], limit.Limits[instances])
	}
	e.Pools = t.verdicts(cfg, images, c, r)
	for _, other := range t.Requests {
		if other.Broken == nil && other.State == zkmodel.RequestRequested && other.ID != r.ID && zkmodel.CompareRequests(other, r) < 0 &&
			slices.ContainsFunc(other.NodeTypes, func(l string) bool { return slices.Contains(r.NodeTypes, l) }) {
			e.Before++
		}
	}
}

// verdicts are those of all pools that have one of a request's labels.
func (t *Tree) verdicts(cfg *configs.Config, images map[string]*zkmodel.Image, c *capacities, r *zkmodel.Request) []PoolVerdict {
	list := []PoolVerdict{}
	served := map[[2]string]bool{}
	for _, p := range t.Pools {
		if p.Broken != nil {
			continue
		}
		served[[2]string{p.ProviderName, p.PoolName}] = true
		if slices.ContainsFunc(r.NodeTypes, func(l string) bool { return p.Has([]string{l}) }) {
			v := PoolVerdict{Provider: p.ProviderName, Pool: p.PoolName, Launcher: p.Hostname}
			v.Verdict, v.Why = t.verdict(cfg, images, c, r, p)
			list = append(list, v)
		}
	}
	for _, label := range r.NodeTypes {
		for _, offer := range cfg.PoolsOf(label) {
			key := [2]string{offer.Provider.Name, offer.Pool.Name}
			if !served[key] {
				served[key] = true
				list = append(list, PoolVerdict{Provider: key[0], Pool: key[1], Verdict: Unserved, Why: "no launcher that runs serves it"})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b PoolVerdict) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Launcher, b.Launcher))
	})
	return list
}

// verdict is that of a registered pool.
func (t *Tree) verdict(cfg *configs.Config, images map[string]*zkmodel.Image, c *capacities, r *zkmodel.Request, p *zkmodel.Component) (Verdict, string) {
	lacks := slices.DeleteFunc(slices.Clone(r.NodeTypes), func(l string) bool { return p.Has([]string{l}) })
	switch {
	case r.DeclinedByPool(p.ID):
		return Declined, declined(r, p)
	case r.Provider != "" && r.Provider != p.ProviderName:
		return Elsewhere, "only nodes of " + r.Provider + " are wanted"
	case len(lacks) > 0:
		return LacksLabel, "it has no label " + strings.Join(lacks, ", ")
	case p.Trouble != "":
		return ProviderDown, p.Trouble
	case t.pausedBy(cfg, p) != "":
		return PoolPaused, t.pausedBy(cfg, p)
	case lacksImage(cfg, images, p, r.NodeTypes):
		return LacksImage, "no image is ready there for each label"
	case p.Fails(r.NodeTypes) != "":
		return LaunchFails, p.Fails(r.NodeTypes)
	}
	if verdict, why := c.verdict(p); verdict != MayServe {
		return verdict, why
	}
	if p.Paused != nil && *p.Paused {
		return PoolFull, "its launcher waits for room in it"
	}
	return MayServe, ""
}

// declined is why a pool has declined a request, as far as the record tells.
func declined(r *zkmodel.Request, p *zkmodel.Component) string {
	if why := r.Declines[p.ID]; why != "" {
		return why
	}
	if len(r.DeclinedBy) == 1 {
		return r.Reason
	}
	return ""
}

// fullText says what is full.
func (c *Capacity) fullText() string {
	name, use := c.Fullest()
	return fmt.Sprintf("%s: %d of %d in use", name, use.Used, *use.Limit)
}

// next says what happens next.
func (e *RequestExplained) next(r *zkmodel.Request) string {
	switch r.State {
	case zkmodel.RequestRequested:
		return e.nextOfRequested()
	case zkmodel.RequestPending:
		if len(e.Locks) == 0 {
			return "its launcher is gone: another one goes on, or the request begins again"
		}
		return fmt.Sprintf("launcher %s hands the nodes over when all %d are ready", e.Locks[0], len(r.NodeTypes))
	case zkmodel.RequestFulfilled:
		return "its requestor takes the nodes and deletes the request; where it does not, launchers free the nodes"
	case zkmodel.RequestFailed:
		return "its requestor reads that it has failed and deletes the request; where it is gone, a launcher does"
	}
	return "nobody of this release knows the state " + string(r.State)
}

// nextOfRequested is next of a request that nobody has accepted.
func (e *RequestExplained) nextOfRequested() string {
	count := func(v Verdict) (n int) {
		for _, p := range e.Pools {
			if p.Verdict == v {
				n++
			}
		}
		return n
	}
	switch {
	case len(e.Locks) > 0:
		return e.Locks[0] + " has its lock: it is served, or changed, or left alone, when that is free"
	case len(e.Pools) == 0:
		return "no pool has its labels: the first launcher that looks lets it fail"
	case count(MayServe) > 0 && e.Before > 0:
		return fmt.Sprintf("%d requests for its labels are served before it", e.Before)
	case count(MayServe) > 0:
		return "a launcher accepts it, or says in its log why not"
	case count(Declined)+count(Elsewhere)+count(LacksLabel) == len(e.Pools):
		return "it fails, as no pool is left that could serve it"
	case count(Unserved) > 0 && count(PoolFull)+count(PoolPaused)+count(ProviderDown)+count(LacksImage)+count(LaunchFails)+count(Undeleted) == 0:
		return "it waits until a launcher runs that serves a pool with its labels"
	case count(PoolFull) > 0:
		return "it waits until nodes are given back"
	case count(LaunchFails)+count(Undeleted) > 0:
		return "its launcher tries again until the cloud works"
	case count(LacksImage) > 0:
		return "it waits for an image: explain IMAGE says why there is none"
	}
	return "it waits until a provider works, or is not paused any more: provider-resume, daemon resume, info PROVIDER"
}

// inLine names who stands in line for a lock, the holder first.
func inLine(locks []recipe.Contender) []string {
	var list []string
	for _, c := range locks {
		list = append(list, cmp.Or(c.Identifier, fmt.Sprintf("session %x", c.Session)))
	}
	return list
}

// when is a time that may not be known, or be that of a record without one.
func when(t time.Time) *time.Time {
	if t.IsZero() || t.Unix() == 0 {
		return nil
	}
	return at(t)
}

// Lines are what people read.
func (e *RequestExplained) Lines(now time.Time) []string {
	lines := []string{listing.Words(" ", "Request", e.Request, "for", strings.Join(e.Labels, ", "))}
	add := func(key, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("  %-10s %s", key, text))
		}
	}
	add("state", listing.Words(" ", e.State, age(e.Since, now)))
	add("asked", listing.Words(" ", at10(e.Asked), age(e.Asked, now), by(e.Requestor)))
	add("event", e.Event)
	add("tenant", e.Tenant)
	add("provider", e.Provider)
	add("priority", fmt.Sprintf("%s, relative %d; %d requests for its labels are before it", e.Priority, e.Relative, e.Before))
	add("why", listing.Words(": ", string(e.Cause), e.Why))
	add("lock", strings.Join(e.Locks, ", then "))
	for _, p := range e.Pools {
		add("pool", listing.Words("  ", fmt.Sprintf("%-24s %-14s", p.Provider+"/"+p.Pool, p.Verdict), listing.Words(": ", p.Launcher, p.Why)))
	}
	for n := range e.Nodes {
		add("node", e.Nodes[n].brief(now))
	}
	add("next", e.Next)
	return lines
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return "by " + who
}

func at10(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func age(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return "(" + listing.Span(now.Sub(*t)) + ")"
}
