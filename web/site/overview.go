package site

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/overview"
)

// How many lines of a part the overview shows, so that all fits on one screen.
const (
	mostMatters = 7
	mostCauses  = 6
	mostPools   = 6
	mostDaemons = 6
	manyPlaces  = 8 // providers, with which the grid takes the whole width
)

//go:embed overview.html
var overviewText string

var overviewTemplate = layout.Parse(overviewText)

// overviewBody is what the overview shows. A part that is not followed is nil.
type overviewBody struct {
	State   layout.Badge
	Sums    []sum
	Wide    bool // the grid takes the whole width
	Grid    *grid
	Matters *list[matter]
	Pools   *list[poolLine]
	Waits   *list[wait]
	Waiting int
	// Rollouts come into service step by step; nil where there are none.
	Rollouts *list[rollout]
	Daemons  *list[daemonLine]
}

// sum is one figure of the whole site.
type sum struct {
	Text, To string
	Kind     string
}

// list is the first of some lines.
type list[T any] struct {
	Shown []T
	Total int
}

// More is how many are not shown.
func (l *list[T]) More() int { return l.Total - len(l.Shown) }

func firstOf[R, T any](all []R, most int, one func(R) T) *list[T] {
	l := &list[T]{Total: len(all)}
	for _, r := range all[:min(most, len(all))] {
		l.Shown = append(l.Shown, one(r))
	}
	return l
}

// matter is alike things that need attention.
type matter struct {
	What, Why, Do string
	To            string
	Count         int
	Urgent        bool
	Since         layout.When
}

// poolLine is what of a pool is used.
type poolLine struct {
	Provider, Pool layout.Link
	Use            string
	Share          int64
	Limited        bool
	Nodes          []layout.Badge
	State          layout.Badge
}

// wait is why some requests wait.
type wait struct {
	Count  int
	Means  string
	To     string
	Oldest layout.When
	ID     layout.Link
	Labels string
	Reason string // of the oldest, where more is known
}

// daemonLine is alike daemons.
type daemonLine struct {
	Kind    string
	State   layout.Badge
	Version string
	Runs    layout.Badge // version of the fleet's configuration
	Hosts   []layout.Link
	More    int
}

// report is the overview as the command status makes it, of what this daemon follows.
func (s *snapshot) report() *overview.Report {
	if s.made == nil {
		t := s.overviewTree()
		s.made = overview.New(t, s.cfg)
		s.made.Images = append(s.made.Images, t.Others(s.cfg)...)
	}
	return s.made
}

// overviewTree is a snapshot as overview has it.
func (s *snapshot) overviewTree() *overview.Tree {
	t := &overview.Tree{
		Now: s.now, Images: s.images, Nodes: s.nodes, Requests: s.requests, Pools: s.pools, Trials: s.trials, Stopped: s.pauses, Guarded: s.guarded, LeftOut: s.leftOut(),
	}
	if s.beside != nil {
		t.Beside = *s.beside
	}
	for _, c := range s.daemons {
		t.Daemons = append(t.Daemons, zkmodel.Daemon{Component: *c})
	}
	for part, followed := range map[string]bool{
		overview.PartImages: s.Tree.Images != nil, overview.PartNodes: s.Tree.Nodes != nil, overview.PartRequests: s.Tree.Requests != nil, overview.PartDaemons: s.Tree.Components != nil,
	} {
		if !followed {
			t.Unfollowed = append(t.Unfollowed, part)
		}
	}
	return t
}

// overview is the first page.
func (s *Site) overview(*http.Request) (*layout.Page, error) {
	look := s.look()
	report := look.report()
	v := &overviewBody{State: layout.Mark("all is well", "good")}
	switch report.State {
	case overview.Attention:
		v.State = layout.Mark("needs attention", "late")
	case overview.Urgent:
		v.State = layout.Mark("needs attention now", "bad")
	case overview.Well:
	}
	matters := mostMatters
	if coming := look.rollouts(report); len(coming) > 0 {
		v.Rollouts = firstOf(coming, mostRollouts, func(r rollout) rollout { return r })
		matters -= fewerMatters
	}
	v.Matters = firstOf(report.Attention, matters, look.matter)
	if s.Tree.Images != nil {
		v.Grid = look.grid(report)
		v.Wide = len(v.Grid.Heads) > manyPlaces
		v.Sums = append(v.Sums, freshSum(report))
	}
	if s.Tree.Nodes != nil {
		v.Pools = firstOf(fullest(report.Pools), mostPools, look.poolLine)
		v.Sums = append(v.Sums, sum{Text: plural(len(s.Tree.Nodes()), "node"), To: "/nodes"})
	}
	if s.Tree.Requests != nil {
		v.Waits = firstOf(report.Requests.Causes, mostCauses, look.wait)
		v.Waiting = report.Requests.Count
		v.Sums = append(v.Sums, sum{Text: plural(report.Requests.Count, "request") + " waiting", To: "/requests"})
	}
	if s.Tree.Components != nil {
		v.Daemons = look.daemonLines()
	}
	return &layout.Page{Template: overviewTemplate, Live: parts["/"], Section: "/", Count: len(report.Attention), Body: v}, nil
}

// freshSum counts how fresh images are.
func freshSum(r *overview.Report) sum {
	counts := map[overview.Freshness]int{}
	all := 0
	for n := range r.Images {
		for _, p := range r.Images[n].Places {
			counts[p.State]++
			all++
		}
	}
	parts := []string{fmt.Sprintf("%d of %d uploads fresh", counts[overview.Fresh], all)}
	for _, f := range []overview.Freshness{overview.Stale, overview.Missing, overview.Unknown, overview.Waits} {
		if counts[f] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[f], f))
		}
	}
	return sum{Text: strings.Join(parts, ", "), To: "/images"}
}

// matter shows what needs attention.
func (s *snapshot) matter(m overview.Matter) matter {
	v := matter{What: m.What, Do: m.Do, Count: m.Count, Urgent: m.Urgent, To: listTo("/attention", "kind", string(m.Kind))}
	v.Why, _, _ = strings.Cut(strings.TrimSpace(m.Why), "\n")
	if m.Since != nil {
		v.Since = layout.Moment(*m.Since, s.now)
	}
	switch of := len(m.Providers) == 1; {
	case of && m.Count > 1:
		v.To = listTo("/attention", "provider", m.Providers[0])
	case len(m.Images) == 1 && s.Tree.Images != nil:
		v.To = imageLink(m.Images[0]).To
	case len(m.Images) == 0 && of && s.Tree.Components != nil:
		v.To = providerLink(m.Providers[0]).To
	}
	return v
}

// fullest are the pools of which the least is left, those that cannot be used first.
func fullest(pools []overview.Capacity) []overview.Capacity {
	pools = slices.Clone(pools)
	slices.SortStableFunc(pools, func(a, b overview.Capacity) int {
		_, x := a.Fullest()
		_, y := b.Fullest()
		return cmp.Or(cmp.Compare(bit(b.Trouble != ""), bit(a.Trouble != "")), cmp.Compare(y.Share(), x.Share()))
	})
	return pools
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// poolLine shows a pool.
func (s *snapshot) poolLine(c overview.Capacity) poolLine {
	resource, use := c.Fullest()
	line := poolLine{Provider: providerLink(c.Provider), Pool: layout.Link{Text: c.Pool}, Use: fmt.Sprintf("%d %s", use.Used, resource)}
	if use.Limit != nil {
		line.Use, line.Share, line.Limited = fmt.Sprintf("%d/%d %s", use.Used, *use.Limit, resource), int64(min(100, use.Share())), true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		b := layout.StateBadge(name, nil)
		line.Nodes = append(line.Nodes, layout.Mark(fmt.Sprintf("%d %s", c.Nodes[name], b.Text), b.Kind))
	}
	switch {
	case c.Disabled:
		line.State = layout.Mark("disabled", "off")
	case s.stopped(c.Provider) != nil:
		line.State, _ = s.condition(c.Provider)
	case c.Trouble != "":
		line.State = layout.Mark("cannot be used", "bad")
	case c.Launchers == 0:
		line.State = layout.Mark("no launcher", "late")
	}
	return line
}

// wait shows why requests wait.
func (s *snapshot) wait(w overview.Wait) wait {
	return wait{
		Count: w.Count, Means: w.Cause.Means(), To: listTo("/requests", "cause", string(w.Cause)), Oldest: layout.Moment(s.now.Add(-time.Duration(w.Oldest)*time.Second), s.now),
		ID: requestLink(w.ID), Labels: strings.Join(w.Labels, ", "), Reason: firstLine(w.Reason),
	}
}

// daemonLines folds daemons that are alike.
func (s *snapshot) daemonLines() *list[daemonLine] {
	var lines []daemonLine
	for _, c := range s.daemons {
		b, runs := daemonBadge(c), s.runs(c)
		at := slices.IndexFunc(lines, func(l daemonLine) bool {
			return l.Kind == c.Kind && l.State == b && l.Version == c.Version && l.Runs == runs
		})
		if at < 0 {
			at, lines = len(lines), append(lines, daemonLine{Kind: c.Kind, State: b, Version: c.Version, Runs: runs})
		}
		if len(lines[at].Hosts) >= mostDaemons {
			lines[at].More++
			continue
		}
		lines[at].Hosts = append(lines[at].Hosts, daemonLink(c.Kind, cmp.Or(c.Hostname, c.Name)))
	}
	return firstOf(lines, mostDaemons, func(l daemonLine) daemonLine { return l })
}

// plural is a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
