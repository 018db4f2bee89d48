package buildlog

import (
	_ "embed" // the page
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// How many lines a page shows.
const (
	usualLines = 500
	mostLines  = 2000
)

// patience is how long one answer reads what it does not know of a log yet.
const patience = 600 * time.Millisecond

// PagePath is the path of the page that shows a build's log.
func PagePath(image, build string) string { return "/build-log/" + url.PathEscape(image+"-"+build) }

// followPath is where the page is told of further lines.
func followPath(image, build string) string { return PagePath(image, build) + "/follow" }

//go:embed page.html
var pageText string

//go:embed rows.html
var rowsText string

var (
	pageTemplate = layout.Parse(rowsText, pageText)
	awayTemplate = layout.Parse(`{{define "body"}}<h1>Log of {{.Name}}</h1><p>{{.Why}}.</p>{{range .Links}}<p>{{template "link" .}}</p>{{end}}{{end}}`)
	errNoLine    = errors.New("this is no number of a line")
)

// view is what the page shows.
type view struct {
	Name  string
	Badge layout.Badge
	Facts []string // size, lines, exit code
	Raw   string   // where the log is as it was written
	Here  string   // the page, without a line

	Live   bool
	Follow string // where further lines come from
	Part   string // what of the log is not known yet

	Phases []phaseView
	Cause  *jump // the line that says why the build failed
	First  *jump // the first line that tells of an error
	Errors []jump
	Wrong  int

	Rows  []row
	Pages []layout.Link // earlier, later, begin, end
	Range string        // which lines these are
}

// phaseView is one entry of the index.
type phaseView struct {
	jump

	Took string
}

// jump leads to a line.
type jump struct {
	Line int
	Text string
	To   string
}

// row is one line.
type row struct {
	N     int
	To    string // its own link
	Mark  string // a class for one that says something
	Spans []Span
	More  string // how much of it is not shown
}

// Page shows a log: from=N begins with line N, line=N has line N in its middle, lines=N shows
// so many; without them it is the end of the log.
//
// Errors: layout.ErrNotFound.
func (h *Handler) Page(r *http.Request) (*layout.Page, error) {
	image, build, err := parseLogName(r.PathValue("name"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", layout.ErrNotFound, err)
	}
	want, err := parsePlace(r.URL.Query())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", layout.ErrNotFound, err)
	}
	file, more, err := h.open(image, build)
	if errors.Is(err, fs.ErrNotExist) {
		return h.away(image, build)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	v, err := h.view(image, build, file, more != nil, want)
	if err != nil {
		return nil, err
	}
	return &layout.Page{Template: pageTemplate, Title: "Log of " + v.Name, Body: v}, nil
}

// open opens a log; on a host that has none, there is none.
func (h *Handler) open(image, build string) (*os.File, More, error) {
	if h.logs == nil {
		return nil, nil, fs.ErrNotExist
	}
	return h.logs.Open(image, build)
}

// place is which lines are wanted; 0 is not said.
type place struct{ from, line, lines int }

func parsePlace(query url.Values) (place, error) {
	p := place{lines: usualLines}
	for name, out := range map[string]*int{"from": &p.from, "line": &p.line, "lines": &p.lines} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return p, fmt.Errorf("%w: %s=%s", errNoLine, name, layout.Visible(text))
		}
		*out = n
	}
	p.lines = min(p.lines, mostLines)
	return p, nil
}

// first is the first line of a page of a log with so many lines.
func (p place) first(total int) int {
	from := p.from
	switch {
	case from > 0:
	case p.line > 0:
		from = p.line - p.lines/4
	default:
		from = total - p.lines + 1
	}
	return max(1, min(from, total))
}

// away is the page of a log that is not on this host.
func (h *Handler) away(image, build string) (*layout.Page, error) {
	missing := h.whereLogIs(image, build)
	var b *zkmodel.BuildTree
	if h.images != nil {
		b = findBuild(h.images(), image, build)
	}
	if b == nil || b.Log == "" && b.Builder == "" {
		return nil, fmt.Errorf("%w: %s", layout.ErrNotFound, missing)
	}
	v := &struct {
		Name, Why string
		Links     []layout.Link
	}{Name: image + "-" + build, Why: missing}
	if IsURL(b.Log) {
		if u, err := url.Parse(b.Log); err == nil && strings.HasPrefix(u.Path, "/log/") {
			u.Path, u.RawPath = strings.Replace(u.Path, "/log/", "/build-log/", 1), ""
			v.Links = append(v.Links, layout.Link{Text: "its page on " + u.Host, To: u.String()})
		}
		v.Links = append(v.Links, layout.Link{Text: "the log as text: " + b.Log, To: b.Log})
	}
	return &layout.Page{Template: awayTemplate, Title: "Log of " + v.Name, Body: v}, nil
}

// view makes the page of an open log.
func (h *Handler) view(image, build string, file *os.File, live bool, want place) (*view, error) {
	v := &view{
		Name: image + "-" + build, Raw: Path(image, build), Here: PagePath(image, build), Live: live,
	}
	if h.images != nil {
		if b := findBuild(h.images(), image, build); b != nil {
			v.Badge = layout.StateBadge(b.State, b.Broken)
		}
	}
	x := h.indexes.of(v.Name)
	x.mu.Lock()
	defer x.mu.Unlock()
	whole, err := x.advance(file, time.Now().Add(patience))
	if err != nil {
		return nil, err
	}
	total := x.total()
	if info, err := file.Stat(); err == nil {
		v.Facts = append(v.Facts, layout.Size(info.Size()))
		if !whole {
			v.Part = fmt.Sprintf("The log is long: so far %s of %s were read, up to line %d.", layout.Size(x.read), layout.Size(info.Size()), total)
		}
	}
	v.Facts = append(v.Facts, fmt.Sprintf("%d lines", total))
	if x.exit != "" {
		v.Facts = append(v.Facts, "exit code "+x.exit)
	}
	from := want.first(total)
	lines, err := x.window(file, from, want.lines)
	if err != nil {
		return nil, err
	}
	v.index(&x.known, want.lines)
	v.show(lines, from, total, want)
	if last := from + len(lines) - 1; live && whole && last >= total {
		v.Follow = followPath(image, build) + "?from=" + strconv.Itoa(x.lines+1)
	}
	return v, nil
}

// link leads to a line, on a page of so many.
func (v *view) link(line, lines int) string {
	return v.Here + "?line=" + strconv.Itoa(line) + shows(lines) + "#L" + strconv.Itoa(line)
}

// shows is the part of a link that says how many lines a page has.
func shows(lines int) string {
	if lines == usualLines {
		return ""
	}
	return "&lines=" + strconv.Itoa(lines)
}

// index is what leads into the log.
func (v *view) index(k *known, lines int) {
	for i, p := range k.phases {
		one := phaseView{jump: jump{p.line, p.name, v.link(p.line, lines)}}
		until := saidAt(k.last)
		if i+1 < len(k.phases) {
			until = k.phases[i+1].at
		}
		if !p.at.IsZero() && until.After(p.at) {
			one.Took = listing.Span(until.Sub(p.at))
		}
		v.Phases = append(v.Phases, one)
	}
	if cause, line := k.finder.Cause(); line > 0 && k.failed() {
		v.Cause = &jump{line, cause.Line, v.link(line, lines)}
	}
	v.Wrong = k.wrong
	for _, line := range k.errors {
		v.Errors = append(v.Errors, jump{Line: line, To: v.link(line, lines)})
	}
	if len(v.Errors) > 0 {
		v.First = &v.Errors[0]
	}
}

// failed reports whether the log tells that the build has failed.
func (k *known) failed() bool { return k.trapped || k.exit != "" && k.exit != "0" }

// show makes the rows, and what leads to others.
func (v *view) show(lines []textLine, from, total int, want place) {
	marks := map[int]string{}
	for _, e := range v.Errors {
		marks[e.Line] = "wrong"
	}
	for _, p := range v.Phases {
		marks[p.Line] = "phase"
	}
	if v.Cause != nil {
		marks[v.Cause.Line] = "cause"
	}
	page := func(line int) string { return v.Here + "?from=" + strconv.Itoa(line) + shows(want.lines) }
	v.Rows = rows(lines, page(from), marks)
	last := from + len(lines) - 1
	to := func(text string, line int) {
		v.Pages = append(v.Pages, layout.Link{Text: text, To: page(line)})
	}
	if from > 1 {
		to("first lines", 1)
		to("earlier", max(1, from-want.lines))
	}
	if last < total {
		to("later", last+1)
		v.Pages = append(v.Pages, layout.Link{Text: "last lines", To: v.Here + "#end"})
	}
	v.Range = fmt.Sprintf("lines %d–%d of %d", from, last, total)
	if len(lines) == 0 {
		v.Range = "no lines yet"
	}
}

// rows are lines as the page shows them; here is a page that has them.
func rows(lines []textLine, here string, marks map[int]string) []row {
	var p painter
	list := make([]row, 0, len(lines))
	for _, line := range lines {
		r := row{N: line.number, To: here + "#L" + strconv.Itoa(line.number), Mark: marks[line.number], Spans: p.paint(line.text)}
		if line.left > 0 {
			r.More = "… " + layout.Size(line.left) + " more"
		}
		list = append(list, r)
	}
	return list
}
