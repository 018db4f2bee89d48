package site

import (
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
)

// grid is how fresh each image is in each provider.
type grid struct {
	Heads []gridHead
	Rows  []gridRow
	More  int // images that are not shown
}

// gridHead is a provider.
type gridHead struct {
	Provider layout.Link
	State    layout.Badge // where there is something to say
	Why      string
}

// gridRow is an image.
type gridRow struct {
	Image layout.Link
	Flags []layout.Badge
	Cells []template.HTML // of gridCells, a column each
}

// gridCell is an image in a provider.
type gridCell struct {
	Class string // of the style sheet; "" is an image that the provider is not to have
	To    string
	Text  string // the age of what serves, or that it is missing
	Mark  string // what is under way
	Bad   string // what failed
	Says  string // all of it, in words
}

// grid lays images out.
func (s *snapshot) grid(r *overview.Report) *grid {
	g := &grid{}
	column := map[string]int{}
	paused := map[int]bool{}
	var names []string
	for _, name := range s.providerNames() {
		if slices.ContainsFunc(r.Images, func(i overview.Image) bool {
			return slices.ContainsFunc(i.Places, func(p overview.Place) bool { return p.Provider == name })
		}) {
			names = append(names, name)
		}
	}
	for n, name := range names {
		head := gridHead{Provider: providerLink(name)}
		if s.Tree.Components == nil {
			head.Provider.To = ""
		}
		if badge, why := s.condition(name); badge.Kind != "good" {
			head.State, head.Why = badge, why
			paused[n] = badge.Kind == "off"
			if badge.Text == "cannot be used" {
				head.State.Text = "down"
			}
		}
		column[name], g.Heads = n, append(g.Heads, head)
	}
	for n := range r.Images[:min(maxRows, len(r.Images))] {
		image := &r.Images[n]
		one := gridRow{Image: imageLink(image.Name), Flags: s.imageFlags(image), Cells: slices.Repeat([]template.HTML{gridCell{}.html()}, len(names))}
		for p := range image.Places {
			place := &image.Places[p]
			at, known := column[place.Provider]
			if !known {
				continue
			}
			c := cellOf(image, place)
			if paused[at] {
				c.Class += " still"
			}
			one.Cells[at] = c.html()
		}
		g.Rows = append(g.Rows, one)
	}
	g.More = len(r.Images) - len(g.Rows)
	return g
}

// imageFlags are what is to be said of an image as a whole.
func (s *snapshot) imageFlags(i *overview.Image) (flags []layout.Badge) {
	if i.Building != nil {
		flags = append(flags, layout.Mark("building "+brief(s.now.Sub(i.Building.Since)), "busy"))
	}
	if i.Failed != nil {
		flags = append(flags, layout.Mark(fmt.Sprintf("failed %d×", i.Failed.Count), "bad"))
	}
	if i.Paused {
		flags = append(flags, layout.Mark("paused", "off"))
	}
	if i.Unconfigured {
		flags = append(flags, layout.Mark("not configured", "off"))
	}
	return flags
}

// html is a cell as the page has it. A grid has thousands, for which a template takes longer than for all else.
func (c gridCell) html() template.HTML {
	if c.Class == "" {
		return "<td></td>"
	}
	escaped := func(text string) string { return html.EscapeString(layout.Visible(text)) }
	var out strings.Builder
	out.WriteString(`<td class="` + escaped(c.Class) + `"><a href="` + escaped(c.To) + `" title="` + escaped(c.Says) + `">` + escaped(c.Text))
	if c.Mark != "" {
		out.WriteString(" <i>" + escaped(c.Mark) + "</i>")
	}
	if c.Bad != "" {
		out.WriteString(" <b>" + escaped(c.Bad) + "</b>")
	}
	out.WriteString("</a></td>")
	return template.HTML(out.String()) //nolint:gosec // every text in it is escaped above
}

// cellOf shows an image in a provider.
func cellOf(image *overview.Image, p *overview.Place) gridCell {
	c := gridCell{Class: freshKinds[p.State], To: imageLink(image.Name).To + "#providers", Text: string(p.State)}
	says := []string{image.Name + " in " + p.Provider + ": " + string(p.State)}
	if p.Age > 0 || p.Build != "" {
		age := time.Duration(p.Age) * time.Second
		c.Text, c.To = brief(age), buildLink(image.Name, p.Build).To
		says = append(says, listing.Span(age)+" old")
	}
	mark := func(is bool, sign, word string) {
		if is {
			c.Mark, says = c.Mark+sign, append(says, word)
		}
	}
	mark(p.Uploading != "", fmt.Sprintf("↑%d%%", p.Percent), fmt.Sprintf("a newer build is being uploaded, %d %%", p.Percent))
	mark(p.Trial != "", "try", "a newer build is on trial")
	mark(p.Canary != "", "◔", "a canary serves a share")
	mark(p.Pinned, "pin", "pinned")
	mark(p.Paused, "‖", "paused")
	if p.Failed != nil {
		c.Bad = fmt.Sprintf("✗%d", p.Failed.Count)
		says = append(says, fmt.Sprintf("uploads failed %d times: %s", p.Failed.Count, firstLine(p.Failed.Reason)))
	}
	c.Says = strings.Join(says, ", ")
	return c
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// brief is a length of time in one unit.
func brief(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
