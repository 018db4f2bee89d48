package overview

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
)

// Page is how an overview is printed.
type Page struct {
	Width int  // columns; no line is longer
	All   bool // every line, however many; else what is alike, or well, is folded and the rest cut
}

// How many lines of a part are shown, so that all fits on one screen.
const (
	mostMatters = 5
	mostImages  = 6
	mostPools   = 4
	mostCauses  = 4
	mostOthers  = 2
	mostPauses  = 6
)

// Write prints the overview for people.
func (r *Report) Write(w io.Writer, p Page) error {
	s := &sheet{page: p, now: r.Time}
	head := map[State]string{Well: "all is well", Attention: "needs attention", Urgent: "needs attention NOW"}[r.State]
	s.line("Poolkeeper, %s: %s", r.Time.Format("2006-01-02 15:04:05 UTC"), head)
	r.matters(s)
	r.freshness(s)
	r.capacity(s)
	r.requests(s)
	r.others(s)
	_, err := io.WriteString(w, s.text.String())
	return err
}

// sheet takes lines.
type sheet struct {
	page Page
	now  time.Time
	text strings.Builder
}

// line adds a line, cut where it would be too long.
func (s *sheet) line(format string, args ...any) {
	s.text.WriteString(strings.TrimRight(Cut(fmt.Sprintf(format, args...), s.page.Width), " ") + "\n")
}

// command adds what is to be typed: all of it, over as many lines as it takes, as a shell reads
// them. Only a word that is longer than a line is cut.
func (s *sheet) command(text string) {
	line := "    $"
	for word := range strings.SplitSeq(text, " ") {
		if room := s.page.Width - len(" \\"); wide(line)+1+wide(word) > room && strings.TrimSpace(line) != "$" {
			s.line("%s \\", line)
			line = "     "
		}
		line += " " + word
	}
	s.line("%s", line)
}

// wide is how many columns a text takes.
func wide(text string) (used int) {
	for _, c := range text {
		used += columns(c)
	}
	return used
}

// part is a heading with what it comes to.
func (s *sheet) part(name, sum string) { s.line("%-10s %s", name, sum) }

// shown is how many of n lines are shown, and cut tells of the others.
func (s *sheet) shown(n, most int) int {
	if s.page.All {
		return n
	}
	return min(n, most)
}

func (s *sheet) cut(n int, what string) {
	if n > 0 {
		s.line("  … and %d more %s: status --all", n, what)
	}
}

// Cut is a text that fits into columns, on one line. What steers a terminal is made
// visible; a character of East Asia or an emoji takes two columns.
func Cut(text string, width int) string {
	text = listing.Visible(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
	used, end := 0, 0 // end is where a mark still fits
	for at, c := range text {
		if used < width {
			end = at
		}
		if used += columns(c); used > width {
			return text[:end] + "…"
		}
	}
	return text
}

// columns is how many a character takes.
func columns(c rune) int {
	if c >= 0x1100 && (c < 0x2000 || c >= 0x2e80) {
		return 2
	}
	return 1
}

// matters is what needs attention.
func (r *Report) matters(s *sheet) {
	n := s.shown(len(r.Attention), mostMatters)
	for _, m := range r.Attention[:n] {
		since := ""
		if m.Since != nil {
			since = " (" + listing.Span(s.now.Sub(*m.Since)) + ")"
		}
		mark := "*"
		if m.Urgent {
			mark = "!"
		}
		room := s.page.Width - len(mark) - 1 - len(since)
		s.line("%s %s%s", mark, Cut(m.What, room), since)
		if why, _, _ := strings.Cut(strings.TrimSpace(m.Why), "\n"); why != "" {
			s.line("    %s", why)
		}
		s.command(m.Do)
	}
	s.cut(len(r.Attention)-n, "that need attention")
}

// row is places that are alike.
type row struct {
	images, providers []string
	state             Freshness
	age               int64
	note              string
	places            int
}

// digits are what differs between alike notes.
var digits = regexp.MustCompile(`\d+`)

// freshness shows how fresh images are: those of which there is more to say than that they are.
func (r *Report) freshness(s *sheet) {
	counts := map[Freshness]int{}
	providers := map[string]bool{}
	all := 0
	for n := range r.Images {
		for _, p := range r.Images[n].Places {
			counts[p.State]++
			providers[p.Provider] = true
			all++
		}
	}
	sum := []string{fmt.Sprintf("%d of %d uploads fresh", counts[Fresh], all)}
	for _, state := range []Freshness{Stale, Missing, Unknown, Waits} {
		if counts[state] > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	s.part("IMAGES", fmt.Sprintf("%s (%s, %s)", strings.Join(sum, ", "), listing.Count(len(r.Images), "image"), listing.Count(len(providers), "provider")))
	rows := r.rows(s)
	n := s.shown(len(rows), mostImages)
	for _, one := range rows[:n] {
		age := ""
		if one.age > 0 {
			age = listing.Span(time.Duration(one.age) * time.Second)
		}
		in := one.providers[0]
		if len(one.providers) > 1 {
			in = listing.Count(len(one.providers), "provider")
		}
		s.line("  %-22s %-13s %-7s %7s  %s", Cut(attention.Names(one.images, 2), 22), Cut(in, 13), one.state, age, one.note)
	}
	s.cut(len(rows)-n, "lines of images")
}

// rows are the places of which there is something to say, alike ones in one.
func (r *Report) rows(s *sheet) []row {
	var rows []row
	add := func(key string, index map[string]int, one row) {
		at, known := index[key]
		if !known {
			index[key], rows = len(rows), append(rows, one)
			return
		}
		had := &rows[at]
		had.age, had.places = max(had.age, one.age), had.places+one.places
		had.images = append(had.images, one.images...)
	}
	alike := map[string]int{}
	for n := range r.Images {
		image := &r.Images[n]
		own := map[string]int{} // rows of this image
		var mine []row
		for _, p := range image.Places {
			note := p.note(image, s.now)
			if p.State == Fresh && note == "" && !s.page.All {
				continue
			}
			key := string(p.State) + digits.ReplaceAllString(note, "#")
			at, known := own[key]
			if !known {
				at, own[key] = len(mine), len(mine)
				mine = append(mine, row{images: []string{image.Name}, state: p.State, note: note})
			}
			mine[at].providers = append(mine[at].providers, p.Provider)
			mine[at].age, mine[at].places = max(mine[at].age, p.Age), mine[at].places+1
		}
		for _, one := range mine {
			key := strings.Join(one.providers, " ") + " " + string(one.state) + digits.ReplaceAllString(one.note, "#")
			if s.page.All {
				key = image.Name + " " + key
			}
			add(key, alike, one)
		}
	}
	rank := func(f Freshness) int { return slices.Index(Freshnesses(), f) }
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(rank(a.state), rank(b.state)), cmp.Compare(b.places, a.places))
	})
	return rows
}

// note says what is going on at a place.
func (p *Place) note(image *Image, now time.Time) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Uploading != "" && p.Percent > 0, "uploading %d%%", p.Percent)
	add(p.Uploading != "" && p.Percent == 0, "uploading")
	add(p.Trial != "", "on trial")
	add(p.Canary != "", "canary")
	add(p.Pinned, "pinned")
	if p.Failed != nil {
		add(true, "failed %d×", p.Failed.Count)
	}
	if image.Building != nil {
		add(true, "building %s", listing.Span(now.Sub(image.Building.Since)))
	}
	if image.Failed != nil {
		add(true, "build failed %d×", image.Failed.Count)
	}
	add(image.Paused && p.State != Fresh, "paused")
	return strings.Join(parts, ", ")
}

// capacity shows pools that are full, nearly so, or of no use.
func (r *Report) capacity(s *sheet) {
	var close []*Capacity
	used, limit, open := 0, 0, 0
	unlimited := false
	for n := range r.Pools {
		c := &r.Pools[n]
		u := c.Uses[instances]
		used += u.Used
		if u.Limit == nil {
			unlimited = true
		} else {
			limit += *u.Limit
		}
		_, most := c.Fullest()
		if s.page.All || most.Share() >= 90 && !c.Disabled || c.Trouble != "" || c.Launchers == 0 && !c.Disabled {
			close = append(close, c)
		}
		if r.hasRoom(c) {
			open++
		}
	}
	for n := range r.Providers {
		c := &r.Providers[n]
		if _, most := c.Fullest(); most.Share() >= 90 {
			close = append(close, c)
		}
	}
	of := fmt.Sprintf("%d of %d servers in use", used, limit)
	if unlimited {
		of = fmt.Sprintf("%d servers in use", used)
	}
	s.part("CAPACITY", fmt.Sprintf("%s in %s, %d with room", of, listing.Count(len(r.Pools), "pool"), open))
	slices.SortStableFunc(close, func(a, b *Capacity) int {
		_, x := a.Fullest()
		_, y := b.Fullest()
		return cmp.Compare(y.Share(), x.Share())
	})
	n := s.shown(len(close), mostPools)
	for _, c := range close[:n] {
		s.line("  %-32s %s", Cut(strings.TrimSuffix(c.Provider+" "+c.Pool, " "), 32), c.words())
	}
	s.cut(len(close)-n, "pools")
}

// hasRoom returns whether a node more fits into a pool and into its provider, as far as their limits are known.
func (r *Report) hasRoom(pool *Capacity) bool {
	if pool.Disabled || pool.Launchers == 0 || pool.Trouble != "" || pool.full() {
		return false
	}
	return !slices.ContainsFunc(r.Providers, func(p Capacity) bool { return p.Provider == pool.Provider && p.full() })
}

// words says what of a pool is used, and what is wrong with it.
func (c *Capacity) words() string {
	resource, use := c.Fullest()
	text := fmt.Sprintf("%d %s", use.Used, resource)
	if use.Limit != nil {
		text = fmt.Sprintf("%d/%d %s", use.Used, *use.Limit, resource)
	}
	switch {
	case c.Disabled:
		text += ", disabled"
	case c.Launchers == 0:
		text += ", no launcher"
	case c.Trouble != "":
		text += ", cannot be used"
	}
	return text
}

// requests shows who waits, by why.
func (r *Report) requests(s *sheet) {
	if r.Requests.Count == 0 {
		s.part("REQUESTS", "none waits")
		return
	}
	s.part("REQUESTS", listing.Count(r.Requests.Count, "request")+" waiting")
	n := s.shown(len(r.Requests.Causes), mostCauses)
	for _, w := range r.Requests.Causes[:n] {
		s.line("  %5d  %-26s the oldest for %s, %s", w.Count, w.Cause.Means(), listing.Span(time.Duration(w.Oldest)*time.Second), w.ID)
		if why, _, _ := strings.Cut(strings.TrimSpace(w.Reason), "\n"); why != "" {
			s.line("         %s", why)
		}
	}
	s.cut(len(r.Requests.Causes)-n, "causes")
}

// rollouts shows what comes into service step by step: waves, trials, the fleet's configuration.
func (r *Report) rollouts(s *sheet) {
	if len(r.Waves) > 0 {
		s.part("WAVES", listing.Count(len(r.Waves), "wave")+" under way")
		n := s.shown(len(r.Waves), mostOthers)
		for n := range r.Waves[:n] {
			w := &r.Waves[n]
			s.line("  %-14s %-10s %s  %s", w.ID, w.State, w.Words(), cmp.Or(w.Note, w.Reason))
		}
		s.cut(len(r.Waves)-n, "waves")
	}
	if len(r.Trials) > 0 {
		s.part("TRIALS", listing.Count(len(r.Trials), "upload")+" under trial")
		n := s.shown(len(r.Trials), mostOthers)
		for n := range r.Trials[:n] {
			one := &r.Trials[n]
			s.line("  %-10s %s in %s (%s): %s", one.Kind, one.Name(), one.Provider, listing.Span(s.now.Sub(one.Since)), one.Words())
		}
		s.cut(len(r.Trials)-n, "trials")
	}
	if r.Rollout != nil && (r.Rollout.Behind > 0 || s.page.All) {
		s.part("FLEET", r.Rollout.Words())
	}
}

// others shows what comes into service, pauses and daemons.
func (r *Report) others(s *sheet) {
	r.rollouts(s)
	shown := s.shown(len(r.Pauses), mostPauses)
	for _, p := range r.Pauses[:shown] {
		word := "paused"
		switch {
		case p.What == "node" || p.What == "waves" || p.What == "wave":
			word = "held"
		case p.Drained:
			word = "drained"
		}
		text := fmt.Sprintf("%s %s by %s: %s", listing.Count(len(p.Names), p.What), word, p.By, attention.Names(p.Names, 4))
		if p.Until != nil {
			text += ", for " + listing.Span(p.Until.Sub(s.now))
		}
		s.part("PAUSED", listing.Words(": ", text, p.Why))
	}
	s.cut(len(r.Pauses)-shown, "pauses")
	type like struct{ kind, state, version string }
	hosts := map[like][]string{}
	var kinds []like
	for _, d := range r.Daemons {
		k := like{d.Kind, cmp.Or(d.State, "in no state"), d.Version}
		if d.Behind {
			k.state += fmt.Sprintf(", configuration %d of %d", d.Configuration, r.Configuration)
		}
		if hosts[k] == nil {
			kinds = append(kinds, k)
		}
		hosts[k] = append(hosts[k], d.Host)
	}
	if len(kinds) == 0 {
		s.part("DAEMONS", "none runs")
	}
	n := s.shown(len(kinds), mostOthers+1)
	for _, k := range kinds[:n] {
		s.part("DAEMONS", fmt.Sprintf("%s %s, version %s: %s", listing.Count(len(hosts[k]), k.kind), k.state, cmp.Or(k.version, "unknown"), attention.Names(hosts[k], 3)))
	}
	s.cut(len(kinds)-n, "daemons")
}
