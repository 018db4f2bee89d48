package site

import (
	_ "embed" // the pages
	"slices"

	"poolkeeper/web/layout"
)

// maxRows is how many rows a table shows: more is for filters, and for the listings.
const maxRows = 500

// sheet is a page of facts and tables.
type sheet struct {
	Heading string
	Sub     string
	Badges  []layout.Badge
	Filter  *filter
	Facts   []fact
	Parts   []part
}

// fact is one thing that is known of what a page is about.
type fact struct {
	Name  string
	Cell  cell
	Plain bool // shown even where there is nothing
}

// part is a section of a page.
type part struct {
	ID, Title, Note string
	Table           *table
	Line            []span // a timeline
	Pre             string
}

// table is a list.
type table struct {
	Caption string // what it shows; read by screen readers
	Heads   []string
	Rows    []row
	Total   int
	Empty   string // what is said of an empty one
	Listing layout.Link
}

// More is how many rows are not shown.
func (t *table) More() int { return t.Total - len(t.Rows) }

// row is a line of a table.
type row struct {
	ID    string // its anchor
	Group string // a heading over it
	To    string // of the heading
	Flags []layout.Badge
	Cells []cell
}

// cell is what stands in one place.
type cell struct {
	Text   string
	To     string // where it leads
	Kind   string // of a badge
	Badge  bool
	Mono   bool
	When   layout.When
	Full   bool // the time in full, not how long ago it was
	Links  []layout.Link
	Badges []layout.Badge
	Small  string // beside it
	Why    string // below it
	Log    string // link to a log
	// Progress is in percent, Progressing says that there is one.
	Progress    int64
	Progressing bool
	Items       []cell // one below the other
}

// Empty reports whether there is nothing in it.
func (c cell) Empty() bool {
	return c.Text == "" && c.When.At == "" && len(c.Links) == 0 && len(c.Badges) == 0 && c.Small == "" && c.Why == "" && c.Log == "" && len(c.Items) == 0
}

func text(s string) cell              { return cell{Text: s} }
func mono(s string) cell              { return cell{Text: s, Mono: true} }
func linked(l layout.Link) cell       { return cell{Text: l.Text, To: l.To} }
func id(l layout.Link) cell           { return cell{Text: l.Text, To: l.To, Mono: true} }
func since(w layout.When) cell        { return cell{When: w} }
func moment(w layout.When) cell       { return cell{When: w, Full: true} }
func state(b layout.Badge) cell       { return cell{Text: b.Text, Kind: b.Kind, Badge: true} }
func several(list []layout.Link) cell { return cell{Links: list} }
func (c cell) small(s string) cell    { c.Small = s; return c }
func (c cell) why(s string) cell      { c.Why = s; return c }
func (c cell) marked(b ...string) cell {
	c.Badges = append(c.Badges, layout.Mark(b[0], b[1]))
	return c
}

// span is a part of a timeline.
type span struct {
	Name, Took string
	X, Width   int // of 1000
	Kind       string
}

// tableOf makes a table of the first rows.
func tableOf[R any](caption, empty string, heads []string, all []R, one func(R) row) *table {
	t := &table{Caption: caption, Empty: empty, Heads: heads, Total: len(all)}
	for _, r := range all[:min(len(all), maxRows)] {
		t.Rows = append(t.Rows, one(r))
	}
	return t
}

// facts leaves out what is not known.
func facts(all ...fact) []fact {
	return slices.DeleteFunc(all, func(f fact) bool { return f.Cell.Empty() && !f.Plain })
}

//go:embed sheet.html
var sheetText string

var sheetTemplate = layout.Parse(sheetText)

// parts are those of the tree that the pages of a section are made of.
var parts = map[string]string{
	"/": "images nodes requests components beside", "/images": "images components", "/nodes": "nodes", "/requests": "requests nodes components",
	"/providers": "images nodes components beside", "/daemons": "components images beside", wavesPath: "beside",
}

// sheetPage makes the page of a sheet.
func sheetPage(section, title string, s *sheet, trail ...layout.Link) *layout.Page {
	if s.Heading == "" {
		s.Heading = title
	}
	return &layout.Page{Live: parts[section], Template: sheetTemplate, Title: title, Section: section, Trail: trail, Body: s}
}
