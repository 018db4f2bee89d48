package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
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
	daemons := tableOf("Builders and launchers that run", "None is running.", []string{"Kind", "Host", "State", "Does for all", "Version"}, kept(f, look.daemons, has), func(c *zkmodel.Component) row {
		return row{ID: c.Kind + "-" + c.Hostname, Cells: []cell{
			text(c.Kind), linked(daemonLink(c.Kind, cmp.Or(c.Hostname, c.Name))), state(daemonBadge(c)).why(listing.Why(c.Reason, c.Broken)),
			text(strings.Join(slices.Sorted(maps.Keys(c.Shares)), ", ")), text(c.Version),
		}}
	})
	sh := &sheet{Filter: f, Parts: []part{
		{ID: "daemons", Table: daemons}, {ID: "pools", Title: "Pools of launchers", Table: look.poolTable(kept(f, look.pools, has))},
	}}
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
		return nil, fmt.Errorf("%s on %s: %w", kind, host, layout.ErrNotFound)
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
