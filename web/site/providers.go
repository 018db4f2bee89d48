package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
)

// providerNames are all that anything is known of, those of the configuration first.
func (s *snapshot) providerNames() (names []string) {
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name], names = true, append(names, name)
		}
	}
	for n := range s.cfg.Providers {
		add(s.cfg.Providers[n].Name)
	}
	for _, p := range s.pools {
		add(p.ProviderName)
	}
	for _, i := range s.images {
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				add(u.Provider)
			}
		}
	}
	for _, n := range s.nodes {
		add(n.Provider)
	}
	return names
}

// stopped is the pause of a provider; nil when it is not paused.
func (s *snapshot) stopped(provider string) *zkmodel.ProviderPause {
	return zkmodel.Paused(s.pauses, s.now)[provider]
}

// condition is how a provider is, and why.
func (s *snapshot) condition(provider string) (layout.Badge, string) {
	if p := s.stopped(provider); p != nil {
		if p.Drain {
			return layout.Mark("drained", "off"), p.Text()
		}
		return layout.Mark("paused", "off"), p.Text()
	}
	trouble, pools, usable := "", 0, 0
	for _, c := range s.pools {
		if c.ProviderName != provider || c.Broken != nil {
			continue
		}
		if pools++; c.Trouble == "" {
			usable++
		}
		trouble = cmp.Or(trouble, c.Trouble)
	}
	for _, d := range s.daemons {
		if why := d.Troubles[provider]; why != "" {
			trouble, pools = cmp.Or(trouble, why), max(1, pools)
		}
	}
	switch {
	case trouble != "" && usable == 0:
		return layout.Mark("cannot be used", "bad"), trouble
	case trouble != "":
		return layout.Mark("in trouble", "bad"), trouble
	case pools == 0 && s.Tree.Components != nil && s.hasPools(provider):
		return layout.Mark("no launcher", "late"), ""
	}
	return layout.Mark("in use", "good"), ""
}

// hasPools reports whether a provider is to launch nodes.
func (s *snapshot) hasPools(provider string) bool {
	c := s.section(provider)
	return c != nil && len(c.Pools) > 0
}

// section is the configuration of a provider; nil where it has none.
func (s *snapshot) section(provider string) *configs.Provider {
	c, _ := s.cfg.Provider(provider)
	return c
}

// providers lists all providers: ?q=.
func (s *Site) providers(r *http.Request) (*layout.Page, error) {
	look := s.look()
	f := filterOf(r, field{Name: "text", Key: "q"})
	report := look.report()
	names := kept(f, look.providerNames(), func(name string) map[string][]string { return map[string][]string{"q": {name}} })
	t := tableOf("Providers", "There are no providers.", []string{"Provider", "State", "Driver", "Images", "Nodes"}, names, func(name string) row {
		badge, why := look.condition(name)
		driver := ""
		if c := look.section(name); c != nil {
			driver = c.Driver
		}
		counts := map[overview.Freshness]int{}
		for _, i := range report.Images {
			for _, p := range i.Places {
				if p.Provider == name {
					counts[p.State]++
				}
			}
		}
		how := state(badge)
		if badge.Kind == "bad" {
			how = how.why(why)
		} else {
			how = how.small(why)
		}
		return row{ID: name, Cells: []cell{linked(providerLink(name)), how, text(driver), {Badges: freshBadges(counts)}, {Badges: look.nodeBadges(name)}}}
	})
	return sheetPage("/providers", "Providers", &sheet{Filter: f, Sub: fmt.Sprint(len(names)), Parts: []part{{ID: "providers", Table: t}}}), nil
}

// freshBadges count images by how fresh they are.
func freshBadges(counts map[overview.Freshness]int) (list []layout.Badge) {
	for _, f := range []overview.Freshness{overview.Fresh, overview.Stale, overview.Missing, overview.Unknown, overview.Waits} {
		if counts[f] > 0 {
			list = append(list, layout.Mark(fmt.Sprintf("%d %s", counts[f], f), freshKinds[f]))
		}
	}
	return list
}

// nodeBadges count the nodes of a provider by state.
func (s *snapshot) nodeBadges(provider string) (list []layout.Badge) {
	counts := map[layout.Badge]int{}
	for _, n := range s.nodes {
		if n.Provider == provider {
			counts[layout.StateBadge(n.State, n.Broken)]++
		}
	}
	for _, b := range slices.SortedFunc(maps.Keys(counts), compareBadges) {
		list = append(list, layout.Mark(fmt.Sprintf("%d %s", counts[b], b.Text), b.Kind))
	}
	return list
}

// provider is the page of one provider: limits, use, errors, images.
func (s *Site) provider(r *http.Request) (*layout.Page, error) {
	look, name := s.look(), r.PathValue("provider")
	if !slices.Contains(look.providerNames(), name) {
		return nil, absent("provider", name, look.providerNames())
	}
	badge, why := look.condition(name)
	sh := &sheet{Heading: name, Badges: []layout.Badge{badge}}
	condition := cell{Why: why}
	if badge.Kind != "bad" {
		condition = text(why)
	}
	sh.Facts = []fact{{Name: "Why", Cell: condition}}
	if c := look.section(name); c != nil {
		sh.Facts = append(sh.Facts, fact{Name: "Driver", Cell: text(c.Driver)}, fact{Name: "Pools", Cell: text(fmt.Sprint(len(c.Pools)))})
	}
	if s.Tree.Nodes != nil {
		sh.Facts = append(sh.Facts, fact{Name: "Nodes", Cell: cell{Badges: look.nodeBadges(name), Links: []layout.Link{{Text: "list", To: listTo("/nodes", "provider", name)}}}})
	}
	sh.Facts = append(facts(sh.Facts...), s.ended("provider", name)...)
	report := look.report()
	if items := look.itemsOf(func(i *thing) bool { return i.Provider == name }); items != nil {
		sh.Parts = append(sh.Parts, part{ID: "attention", Title: "Needs attention", Table: items})
	}
	if s.Tree.Nodes != nil {
		sh.Parts = append(sh.Parts, part{ID: "limits", Title: "Limits and use", Table: useTable(report, name)})
	}
	if s.Tree.Images != nil {
		sh.Parts = append(sh.Parts, part{ID: "images", Title: "Images", Table: look.imagesIn(report, name)})
	}
	pools := slices.DeleteFunc(slices.Clone(look.pools), func(p *zkmodel.Component) bool { return p.ProviderName != name })
	sh.Parts = append(sh.Parts, part{ID: "pools", Title: "Pools of launchers", Table: look.poolTable(pools)})
	if s.Figures != nil {
		t := tableOf("What this daemon has measured of the provider since it began", "Nothing yet.", []string{"Figure", "Of", "Value", "Means"}, s.Figures("provider", name), func(f Figure) row {
			return row{Cells: []cell{mono(f.Name), text(f.Labels), text(f.Value), text(f.Help)}}
		})
		sh.Parts = append(sh.Parts, part{ID: "figures", Title: "Errors, refusals, latency", Note: "As this daemon has measured it since it began; the other daemons have theirs.", Table: t})
	}
	return sheetPage("/providers", "Provider "+name, sh, to("Providers", "/providers")), nil
}

// useTable is what of a provider and its pools is used.
func useTable(report *overview.Report, provider string) *table {
	t := &table{Caption: "Limits and use of the provider and its pools", Heads: []string{"Pool", "Resource", "Used", "Limit", ""}, Empty: "This daemon's configuration has no limits of it."}
	add := func(c overview.Capacity) {
		for _, name := range slices.Sorted(maps.Keys(c.Uses)) {
			use := c.Uses[name]
			one := row{Cells: []cell{text(cmp.Or(c.Pool, "all")), text(name), text(fmt.Sprint(use.Used)), text("none"), {}}}
			if use.Limit != nil {
				one.Cells[3] = text(fmt.Sprint(*use.Limit))
				one.Cells[4] = cell{Progressing: true, Progress: int64(use.Share())}
			}
			t.Rows, t.Total = append(t.Rows, one), t.Total+1
		}
	}
	for _, c := range slices.Concat(report.Providers, report.Pools) {
		if c.Provider == provider {
			add(c)
		}
	}
	return t
}

// imagesIn are the images that a provider is to have.
func (s *snapshot) imagesIn(report *overview.Report, provider string) *table {
	type there struct {
		image *overview.Image
		place *overview.Place
	}
	var list []there
	for i := range report.Images {
		for p := range report.Images[i].Places {
			if report.Images[i].Places[p].Provider == provider {
				list = append(list, there{&report.Images[i], &report.Images[i].Places[p]})
			}
		}
	}
	return tableOf("Images in this provider", "It is to have no images.", []string{"Image", "In service", "Build", "Age", "Under way"}, list, func(t there) row {
		return s.placeRow(linked(imageLink(t.image.Name)), t.image, t.place)
	})
}

// places is an image in each provider.
func (s *snapshot) places(image string) *table {
	report := s.report()
	at := slices.IndexFunc(report.Images, func(i overview.Image) bool { return i.Name == image })
	heads := []string{"Provider", "In service", "Build", "Age", "Under way"}
	if at < 0 {
		return &table{Caption: "The image in each provider", Heads: heads, Empty: "It is in no provider."}
	}
	one := &report.Images[at]
	return tableOf("The image in each provider", "It is to be in no provider.", heads, one.Places, func(p overview.Place) row {
		return s.placeRow(linked(providerLink(p.Provider)), one, &p)
	})
}

// placeRow is an image in a provider, in a line.
func (s *snapshot) placeRow(what cell, image *overview.Image, p *overview.Place) row {
	age := ""
	if p.Age > 0 {
		age = listing.Span(layout.Seconds(float64(p.Age)))
	}
	var going []string
	add := func(is bool, text string) {
		if is {
			going = append(going, text)
		}
	}
	add(p.Uploading != "", "uploading "+p.Uploading)
	add(p.Trial != "", "on trial "+p.Trial)
	add(p.Canary != "", "canary "+p.Canary)
	add(p.Pinned, "pinned")
	add(p.Paused || image.Paused, "paused")
	add(image.Building != nil, "building")
	under := text(strings.Join(going, ", "))
	if p.Uploading != "" {
		under.Progress, under.Progressing = p.Percent, true
	}
	if p.Failed != nil {
		under = under.marked(fmt.Sprintf("failed %d×", p.Failed.Count), "bad").why(p.Failed.Reason)
	}
	build := cell{}
	if p.Build != "" {
		link := buildLink(image.Name, p.Build)
		build = cell{Text: p.Build, To: link.To, Mono: true}
	}
	return row{Cells: []cell{what, state(layout.Mark(string(p.State), freshKinds[p.State])), build, text(age), under}}
}

// freshKinds are the colours of freshness.
var freshKinds = map[overview.Freshness]string{overview.Fresh: "good", overview.Stale: "late", overview.Missing: "bad", overview.Unknown: "off", overview.Waits: "off"}
