package site

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/history"
	"poolkeeper/zkmodel/listing"
)

// requests lists all requests in the order in which they are served: ?state= &label= &cause= &q=.
func (s *Site) requests(r *http.Request) (*layout.Page, error) {
	look := s.look()
	causes := look.report().Requests
	var states, names []string
	for _, one := range look.requests {
		states = append(states, string(one.State))
	}
	for _, c := range causes.Causes {
		names = append(names, string(c.Cause))
	}
	f := filterOf(r, field{Name: "state", Key: "state", Options: states}, field{Name: "waits for", Key: "cause", Options: names},
		field{Name: "label", Key: "label"}, field{Name: "provider", Key: "provider"}, field{Name: "text", Key: "q"})
	list := kept(f, look.requests, func(one *zkmodel.Request) map[string][]string {
		return map[string][]string{
			"state": {string(one.State)}, "label": one.NodeTypes, "provider": {one.Provider}, "cause": {string(causes.CauseOf(one.ID))},
			"q": append([]string{one.ID, one.Requestor, one.EventID, one.TenantName, one.Reason}, one.NodeTypes...),
		}
	})
	t := tableOf("Requests, in the order in which they are served", "There are no requests.",
		[]string{"Request", "State", "Since", "Labels", "Nodes", "Requestor", "Why it waits"}, list, func(one *zkmodel.Request) row {
			why := text(causes.CauseOf(one.ID).Means()).why(listing.Why(one.Reason, one.Broken))
			if len(one.DeclinedBy) > 0 {
				why = why.small("declined by " + strings.Join(one.DeclinedBy, ", "))
			}
			return row{ID: one.ID, Cells: []cell{
				id(requestLink(one.ID)), state(layout.StateBadge(one.State, one.Broken)), since(look.changed(one)),
				several(links(one.NodeTypes, look.labelLink)), several(links(one.Nodes, nodeLink)), text(one.Requestor).small(one.EventID), why,
			}}
		})
	t.Listing = to("listing", "/request-list")
	return sheetPage("/requests", "Requests", &sheet{Filter: f, Sub: fmt.Sprint(len(list)), Parts: []part{{ID: "requests", Table: t}}}), nil
}

func (s *snapshot) changed(r *zkmodel.Request) layout.When {
	return layout.Moment(listing.Changed(r.StateTime, r.Stat.Mtime), s.now)
}

// request is the page of one request: its life as far as the records tell.
func (s *Site) request(r *http.Request) (*layout.Page, error) {
	look, id := s.look(), r.PathValue("request")
	at := slices.IndexFunc(look.requests, func(one *zkmodel.Request) bool { return one.ID == id })
	if at < 0 {
		return nil, s.gone("request", id, idsOf(look.requests, func(r *zkmodel.Request) string { return r.ID }))
	}
	one := look.requests[at]
	sh := &sheet{Heading: "Request " + id, Badges: []layout.Badge{layout.StateBadge(one.State, one.Broken)}, Facts: append(look.requestFacts(one), s.ended("request", id)...)}
	var nodes []*zkmodel.Node
	for _, n := range look.nodes {
		if n.AllocatedTo == id || slices.Contains(one.Nodes, n.ID) {
			nodes = append(nodes, n)
		}
	}
	sh.Parts = append(sh.Parts, part{ID: "life", Title: "Life", Table: look.life(one, nodes)})
	if s.Tree.Nodes != nil && len(nodes) > 0 {
		sh.Parts = append(sh.Parts, part{ID: "nodes", Title: "Nodes", Table: look.nodeTable(nodes)})
	}
	if s.Tree.Components != nil && one.State == zkmodel.RequestRequested {
		sh.Parts = append(sh.Parts, part{ID: "pools", Title: "Pools that have its labels", Table: look.candidates(one)})
	}
	return sheetPage("/requests", "Request "+id, sh, to("Requests", "/requests")), nil
}

// requestFacts are what is known of a request.
func (s *snapshot) requestFacts(r *zkmodel.Request) []fact {
	causes := s.report().Requests
	waits := text(causes.CauseOf(r.ID).Means())
	if r.State == zkmodel.RequestFulfilled || r.State == zkmodel.RequestFailed {
		waits = cell{}
	}
	return facts(
		fact{Name: "Waits", Cell: waits},
		fact{Name: "Reason", Cell: cell{Why: listing.Why(r.Reason, r.Broken)}},
		fact{Name: "Labels", Cell: several(links(r.NodeTypes, s.labelLink))},
		fact{Name: "Requestor", Cell: text(r.Requestor)},
		fact{Name: "Tenant", Cell: text(r.TenantName)},
		fact{Name: "Provider", Cell: linked(providerLink(r.Provider))},
		fact{Name: "Priority", Cell: text(fmt.Sprint(r.RelativePriority))},
		fact{Name: "Event", Cell: mono(r.EventID)},
		fact{Name: "Of the requestor", Cell: mono(r.RequestorData.Text())},
	)
}

// step is one of a request's life.
type step struct {
	at   time.Time
	what string
	link layout.Link
	why  string
}

// life is what became of a request, the first first.
func (s *snapshot) life(r *zkmodel.Request, nodes []*zkmodel.Node) *table {
	asked := r.CreatedTime.Time()
	if r.CreatedTime == 0 {
		asked = r.Stat.Ctime
	}
	steps := []step{{at: asked, what: listing.Words(" ", "asked for by", r.Requestor)}}
	past := s.past(history.Request, r.ID, string(r.State))
	for _, m := range past {
		if m.State != string(zkmodel.RequestRequested) {
			steps = append(steps, step{at: m.At, what: requestWords(m.State)})
		}
	}
	for _, pool := range r.DeclinedBy {
		steps = append(steps, step{what: "declined by " + pool})
	}
	for _, n := range nodes {
		if n.CreatedTime != 0 {
			steps = append(steps, step{at: n.CreatedTime.Time(), what: listing.Words(" ", "accepted by", n.Launcher+":", "node for it in", n.Provider, n.Pool), link: nodeLink(n.ID)})
		}
		for _, m := range s.past(history.Node, n.ID, string(n.State)) {
			steps = append(steps, step{at: m.At, what: "node " + m.State, link: nodeLink(n.ID)})
		}
		what := listing.Words(" ", "node", string(n.State))
		if n.Attempt > 1 {
			what += fmt.Sprintf(", attempt %d", n.Attempt)
		}
		steps = append(steps, step{at: listing.Changed(n.StateTime, n.Stat.Mtime), what: what, link: nodeLink(n.ID), why: n.Reason})
	}
	steps = append(steps, step{at: listing.Changed(r.StateTime, r.Stat.Mtime), what: requestWords(string(r.State)), why: listing.Why(r.Reason, r.Broken)})
	slices.SortStableFunc(steps[1:], func(a, b step) int {
		if a.at.IsZero() || b.at.IsZero() {
			return 0
		}
		return a.at.Compare(b.at)
	})
	return tableOf("What became of the request, as far as the records tell", "", []string{"When", "After", "What", "Node"}, steps, func(one step) row {
		after := ""
		if !one.at.IsZero() && one.at.After(asked) {
			after = listing.Span(one.at.Sub(asked))
		}
		return row{Cells: []cell{moment(layout.Moment(one.at, s.now)), text(after), text(one.what).why(one.why), id(one.link)}}
	})
}

// past are the states that something has been in before its present one, where this daemon keeps them.
func (s *snapshot) past(kind history.Kind, id, state string) []history.Moment {
	if s.Times == nil {
		return nil
	}
	times := s.Times(kind, id)
	if n := len(times); n > 0 && times[n-1].State == state {
		times = times[:n-1] // the record tells that
	}
	return times
}

// requestWords say what a state of a request means for who has asked.
func requestWords(state string) string {
	means := map[string]string{
		string(zkmodel.RequestPending): "accepted, nodes are made", string(zkmodel.RequestFulfilled): "handed over", string(zkmodel.RequestFailed): "no launcher could serve it",
	}
	return listing.Words(": ", state, means[state])
}

// candidates are the pools that could serve a request.
func (s *snapshot) candidates(r *zkmodel.Request) *table {
	pools := slices.DeleteFunc(slices.Clone(s.pools), func(p *zkmodel.Component) bool {
		return p.Broken != nil || !p.Has(r.NodeTypes) || r.Provider != "" && r.Provider != p.ProviderName
	})
	return tableOf("Pools that have its labels", "No pool that is registered has all of its labels.", []string{"Pool", "Launcher", "State"}, pools, func(p *zkmodel.Component) row {
		how := state(poolBadge(p)).why(p.Trouble)
		if p.Trouble == "" {
			how = how.small(p.Reason)
		}
		if r.DeclinedByPool(p.ID) {
			how = how.marked("declined", "off")
		}
		return row{Cells: []cell{linked(providerLink(p.ProviderName)).small(p.PoolName), linked(daemonLink(zkmodel.KindLauncher, p.Hostname)), how}}
	})
}
