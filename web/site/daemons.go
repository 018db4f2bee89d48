package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
)

// daemonBadge is how a daemon is.
func daemonBadge(c *zkmodel.Component) layout.Badge {
	switch {
	case c.Broken == nil && c.Reason != "":
		return layout.Mark("withdrawn", "bad")
	case c.Broken == nil && c.Paused != nil && *c.Paused:
		return layout.Mark("paused", "off")
	}
	return layout.StateBadge(c.State, c.Broken)
}

// poolBadge is how a pool is.
func poolBadge(c *zkmodel.Component) layout.Badge {
	switch {
	case c.Broken == nil && c.Trouble != "":
		return layout.Mark("cannot be used", "bad")
	case c.Broken == nil && c.Paused != nil && *c.Paused:
		return layout.Mark("paused", "off")
	}
	return layout.StateBadge(c.State, c.Broken)
}

// member is what a daemon tells of the fleet's configuration that it runs; nil where it tells nothing.
func (s *snapshot) member(c *zkmodel.Component) *fleet.Member {
	if s.beside == nil {
		return nil
	}
	for n := range s.beside.Members {
		if m := &s.beside.Members[n]; m.Err == nil && m.Kind == c.Kind && m.Host == c.Hostname {
			return m
		}
	}
	return nil
}

// runs is the version of the fleet's configuration that a daemon runs; nothing where it has a file.
func (s *snapshot) runs(c *zkmodel.Component) layout.Badge {
	m := s.member(c)
	switch {
	case m == nil:
		return layout.Badge{}
	case m.Number == 0:
		return layout.Mark("no configuration", "bad")
	case s.beside.Current == nil || m.Runs(s.beside.Current):
		return layout.Mark(fmt.Sprintf("config %d", m.Number), "off")
	case m.Reason != "":
		return layout.Mark(fmt.Sprintf("config %d of %d", m.Number, s.beside.Current.Number), "bad")
	}
	return layout.Mark(fmt.Sprintf("config %d of %d", m.Number, s.beside.Current.Number), "late")
}

// fleetPart is the fleet's configuration, and which version each daemon runs; nil where daemons have files.
func (s *snapshot) fleetPart() *part {
	if s.beside == nil || len(s.beside.Members) == 0 {
		return nil
	}
	one := &part{ID: "fleet", Title: "The fleet's configuration", Note: "No version can be read."}
	if r := s.report().Rollout; r != nil {
		one.Note = listing.Words(", ", r.Words(), r.Message)
		if r.Since != nil {
			one.Note = listing.Words(", ", r.Words(), "pushed by "+r.By+" "+listing.Span(s.now.Sub(*r.Since))+" ago", r.Message)
		}
	}
	if err := s.beside.Unversioned; err != nil {
		one.Note += ": " + err.Error()
	}
	one.Table = tableOf("Which version of the configuration each daemon runs", "", []string{"Daemon", "Runs", "Since", "Refuses"}, s.beside.Members, func(m fleet.Member) row {
		if m.Err != nil {
			return row{Cells: []cell{text(m.Name), state(layout.Mark("cannot be read", "bad")), {}, {Why: m.Err.Error()}}}
		}
		runs := s.runs(&zkmodel.Component{Kind: m.Kind, Hostname: m.Host})
		began := cell{}
		if m.Since != 0 {
			began = since(layout.Moment(time.Unix(m.Since, 0), s.now))
		}
		name := linked(daemonLink(m.Kind, m.Host)).small(m.Kind)
		if !s.hasDaemon(m.Kind, m.Host) {
			name = text(m.Host).small(m.Kind)
		}
		return row{Cells: []cell{name, state(runs), began, {Why: m.Reason}}}
	})
	return one
}

// runsCell is runs with why it is not another.
func (s *snapshot) runsCell(c *zkmodel.Component) cell {
	one := cell{Badges: badges(s.runs(c))}
	if m := s.member(c); m != nil {
		one.Why = m.Reason
	}
	return one
}

// badges are those that there are.
func badges(b layout.Badge) []layout.Badge {
	if b.Text == "" {
		return nil
	}
	return []layout.Badge{b}
}

// sinksPart is how far the sinks of events have come; nil where there are none.
func (s *snapshot) sinksPart() *part {
	if s.beside == nil || len(s.beside.Sinks) == 0 {
		return nil
	}
	t := tableOf("Sinks of events, and what each has not got", "", []string{"Sink", "State", "Waits since", "Dead letters"}, s.beside.Sinks, func(p dispatch.SinkPlace) row {
		how, waits := layout.Mark("has all", "good"), cell{}
		if !p.Next.IsZero() {
			how, waits = layout.Mark("is given events", "busy"), since(layout.Moment(p.Next, s.now))
			if s.now.Sub(p.Next) > overview.SinkLate {
				how = layout.Mark("does not get its events", "bad")
			}
		}
		letters := cell{}
		if p.Letters > 0 {
			letters = letters.marked(fmt.Sprint(p.Letters), "bad")
		}
		return row{Cells: []cell{text(p.Sink), state(how), waits, letters}}
	})
	return &part{ID: "sinks", Title: "Sinks of events", Table: t}
}

// hasDaemon reports whether a daemon runs.
func (s *snapshot) hasDaemon(kind, host string) bool {
	return slices.ContainsFunc(s.daemons, func(c *zkmodel.Component) bool { return c.Kind == kind && c.Hostname == host })
}

// daemons lists builders and launchers with their pools: ?state= &q=.
func (s *Site) daemons(r *http.Request) (*layout.Page, error) {
	look := s.look()
	f := filterOf(r, field{Name: "text", Key: "q"})
	has := func(c *zkmodel.Component) map[string][]string {
		return map[string][]string{"q": append([]string{c.Kind, c.Hostname, c.Version, c.ProviderName, c.PoolName, c.State}, c.SupportedLabels...)}
	}
	daemons := tableOf("Builders and launchers that run", "None is running.", []string{"Kind", "Host", "State", "Does for all", "Version", "Configuration"}, kept(f, look.daemons, has), func(c *zkmodel.Component) row {
		return row{ID: c.Kind + "-" + c.Hostname, Cells: []cell{
			text(c.Kind), linked(daemonLink(c.Kind, cmp.Or(c.Hostname, c.Name))), state(daemonBadge(c)).why(listing.Why(c.Reason, c.Broken)),
			text(strings.Join(slices.Sorted(maps.Keys(c.Shares)), ", ")), text(c.Version),
			{Badges: badges(look.runs(c))},
		}}
	})
	sh := &sheet{Filter: f, Parts: []part{
		{ID: "daemons", Table: daemons}, {ID: "pools", Title: "Pools of launchers", Table: look.poolTable(kept(f, look.pools, has))},
	}}
	if one := look.fleetPart(); one != nil {
		sh.Parts = append(sh.Parts, *one)
	}
	if one := look.sinksPart(); one != nil {
		sh.Parts = append(sh.Parts, *one)
	}
	return sheetPage("/daemons", "Daemons", sh), nil
}

// poolTable lists pools of launchers.
func (s *snapshot) poolTable(pools []*zkmodel.Component) *table {
	return tableOf("Pools of launchers", "No pool is registered.", []string{"Provider", "Pool", "Launcher", "State", "Labels"}, pools, func(c *zkmodel.Component) row {
		labels := slices.Concat(c.SupportedLabels, c.TroubledLabels)
		few := cell{Links: links(labels[:min(6, len(labels))], s.labelLink)}
		if more := len(labels) - len(few.Links); more > 0 {
			few.Small = fmt.Sprintf("and %d more", more)
		}
		how := state(poolBadge(c)).why(cmp.Or(c.Trouble, listing.Why("", c.Broken)))
		if c.Trouble == "" {
			how = how.small(c.Reason)
		}
		name := c.PoolName
		if c.Broken != nil {
			name = c.Name
		}
		return row{Cells: []cell{linked(providerLink(c.ProviderName)), text(name), linked(daemonLink(zkmodel.KindLauncher, c.Hostname)), how, few}}
	})
}

// daemon is the page of one daemon.
func (s *Site) daemon(r *http.Request) (*layout.Page, error) {
	look, kind, host := s.look(), r.PathValue("kind"), r.PathValue("host")
	at := slices.IndexFunc(look.daemons, func(c *zkmodel.Component) bool { return c.Kind == kind && cmp.Or(c.Hostname, c.Name) == host })
	if at < 0 {
		var hosts []string
		for _, c := range look.daemons {
			if c.Kind == kind {
				hosts = append(hosts, cmp.Or(c.Hostname, c.Name))
			}
		}
		return nil, absent(kind+" on", host, hosts)
	}
	c := look.daemons[at]
	var providers []string
	if c.Providers != nil {
		providers = *c.Providers
	}
	sh := &sheet{
		Heading: strings.ToUpper(kind[:1]) + kind[1:] + " on " + host, Badges: []layout.Badge{daemonBadge(c)},
		Facts: facts(
			fact{Name: "Reason", Cell: cell{Why: listing.Why(c.Reason, c.Broken)}},
			fact{Name: "Version", Cell: text(c.Version)},
			fact{Name: "Configuration", Cell: look.runsCell(c)},
			fact{Name: "Process", Cell: mono(c.Instance)},
			fact{Name: "Serves", Cell: several(links(providers, providerLink))},
			fact{Name: "Takes", Cell: text(strings.Join(c.Commands, ", "))},
			fact{Name: "Knows", Cell: text(strings.Join(c.Knows, ", "))},
		),
	}
	if len(c.Troubles) > 0 {
		sh.Parts = append(sh.Parts, part{ID: "troubles", Title: "Providers that it cannot use", Table: tableOf("Providers that it cannot use", "", []string{"Provider", "Why"},
			slices.Sorted(maps.Keys(c.Troubles)), func(name string) row {
				return row{Cells: []cell{linked(providerLink(name)), {Why: c.Troubles[name]}}}
			})})
	}
	if kind == zkmodel.KindLauncher {
		pools := slices.DeleteFunc(slices.Clone(look.pools), func(p *zkmodel.Component) bool { return p.Hostname != c.Hostname })
		sh.Parts = append(sh.Parts, part{ID: "pools", Title: "Pools", Table: look.poolTable(pools)})
	}
	sh.Parts = append(sh.Parts, part{ID: "shares", Title: "Does for all", Table: tableOf("What it does for all daemons", "Nothing at the moment.", []string{"What", "Since"},
		slices.Sorted(maps.Keys(c.Shares)), func(name string) row {
			return row{Cells: []cell{text(name), moment(layout.Moment(c.Shares[name].Time(), look.now))}}
		})})
	if kind == zkmodel.KindBuilder {
		var rows []row
		for _, image := range look.images {
			for _, b := range image.Builds {
				if b.Builder == c.Hostname && b.State == zkmodel.BuildBuilding {
					rows = append(rows, buildRow(image.Name, look.viewBuild(image, b)))
				}
			}
		}
		sh.Parts = append(sh.Parts, part{ID: "builds", Title: "Builds now", Table: &table{Caption: "Builds that it makes", Heads: buildHeads, Rows: rows, Total: len(rows), Empty: "None."}})
	}
	return sheetPage("/daemons", sh.Heading, sh, to("Daemons", "/daemons")), nil
}
