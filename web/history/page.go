package history

import (
	_ "embed" // the page
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/history"
	"poolkeeper/zkmodel/listing"
)

// Path is that of the page.
const Path = "/history"

// Finder finds what has ended; a history.Store is one.
type Finder interface {
	Find(q history.Query) (*history.Answer, error)
}

// Pages are the page and its JSON.
type Pages struct {
	Store  Finder
	Logger hclog.Logger
	Now    func() time.Time

	once sync.Once
	one  chan struct{} // held by what reads for the JSON
}

// turn has room for one: what reads the file for the JSON may take half a second, and there may be many who ask.
func (h *Pages) turn() chan struct{} {
	h.once.Do(func() { h.one = make(chan struct{}, 1) })
	return h.one
}

//go:embed page.html
var pageText string

var pageTemplate = layout.Parse(pageText)

// view is what the page shows.
type view struct {
	Fields  []field
	Path    string
	Filters bool // some are set
	Spans   []layout.Link
	Since   layout.When
	Until   layout.When
	Begun   layout.When
	Short   bool // recording began later than Since
	Bars    []bar
	Holes   []hole // gaps in the timeline
	Ticks   []string
	Counted layout.When // only from then on
	Total   [3]int      // succeeded, failed, none
	Gaps    []gapView
	Rows    []row
	Next    string
	JSON    string
}

type field struct {
	Name, Key, Value string
	Options          []string
}

// bar is a part of the timeline, of 1000 by 60.
type bar struct {
	X, Width          int
	Good, Bad, Off    piece
	To, Title, Around string
}

// piece is a part of a bar.
type piece struct{ Y, Height int }

type hole struct {
	X, Width int
	Title    string
}

type gapView struct {
	From, To layout.When
	Span     string
	Why      string
}

// row is one that has ended.
type row struct {
	Kind     string
	ID       layout.Link
	State    layout.Badge
	Ended    layout.When
	Unsure   bool
	Took     string
	Steps    string // the states, with how long it was in each
	What     []layout.Link
	Host     string
	Reason   string
	Log      string
	Event    string
	Children layout.Link // the nodes of a request
}

// Page is the page.
//
// Errors: layout.ErrNotFound for what a URL asks wrongly.
func (h *Pages) Page(r *http.Request) (*layout.Page, error) {
	values, now := r.URL.Query(), h.Now()
	q, err := parse(values, now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", layout.ErrNotFound, err)
	}
	found, err := h.Store.Find(q)
	if err != nil {
		return nil, err
	}
	v := &view{
		Path: Path, Since: layout.Moment(q.Since, now), Until: layout.Moment(q.Until, now), Begun: layout.Moment(found.Begun, now),
		Short: found.Begun.After(q.Since), Counted: layout.Moment(found.Counted, now), Next: next(Path, values, q, found.Next), JSON: "/history.json",
	}
	if r.URL.RawQuery != "" {
		v.JSON += "?" + values.Encode()
	}
	v.filters(values)
	v.timeline(found, q, values)
	for _, g := range found.Gaps {
		v.Gaps = append(v.Gaps, gapView{layout.Moment(g.From, now), layout.Moment(g.To, now), listing.Span(g.To.Sub(g.From)), g.Why})
	}
	for _, e := range found.Entries {
		v.Rows = append(v.Rows, rowOf(e, now))
	}
	return &layout.Page{Template: pageTemplate, Title: "History", Section: Path, Body: v}, nil
}

// filters are the fields of the form, and the links to other times.
func (v *view) filters(values url.Values) {
	kinds, outcomes := []string{}, []string{}
	for _, k := range history.Kinds {
		kinds = append(kinds, string(k))
	}
	for _, o := range history.Outcomes {
		outcomes = append(outcomes, string(o))
	}
	for _, f := range []field{
		{Name: "what", Key: keyKind, Options: kinds},
		{Name: "came to", Key: keyOutcome, Options: outcomes},
		{Name: "image", Key: keyImage},
		{Name: "provider", Key: keyProvider},
		{Name: "label", Key: keyLabel},
		{Name: "was", Key: keyState},
		{Name: "id", Key: keyID},
		{Name: "last", Key: keyLast},
	} {
		f.Value = values.Get(f.Key)
		v.Filters = v.Filters || f.Value != ""
		v.Fields = append(v.Fields, f)
	}
	for _, last := range []string{"1h", "24h", "7d", "30d"} {
		to := keep(values, keyKind, keyOutcome, keyState, keyImage, keyBuild, keyProvider, keyLabel, keyID, keyRequest)
		to.Set(keyLast, last)
		v.Spans = append(v.Spans, layout.Link{Text: last, To: Path + "?" + to.Encode()})
	}
}

// keep are some of the values of a URL.
func keep(values url.Values, keys ...string) url.Values {
	to := url.Values{}
	for _, key := range keys {
		if value := values.Get(key); value != "" {
			to.Set(key, value)
		}
	}
	return to
}

// The size of the timeline, in its own units.
const wide, high = 1000, 60

// timeline draws how many ended when, and when nothing was recorded.
func (v *view) timeline(found *history.Answer, q history.Query, values url.Values) {
	most := 1
	for _, c := range found.Counts {
		most = max(most, c.Succeeded+c.Failed+c.None)
	}
	span := q.Until.Sub(q.Since)
	x := func(at time.Time) int {
		return int(wide * float64(min(max(0, at.Sub(q.Since)), span)) / float64(max(1, span)))
	}
	tall := func(n int) int {
		if n == 0 {
			return 0
		}
		return max(2, n*high/most)
	}
	for _, c := range found.Counts {
		v.Total[0], v.Total[1], v.Total[2] = v.Total[0]+c.Succeeded, v.Total[1]+c.Failed, v.Total[2]+c.None
		if c.Succeeded+c.Failed+c.None == 0 {
			continue
		}
		to := keep(values, keyKind, keyOutcome, keyState, keyImage, keyBuild, keyProvider, keyLabel, keyID, keyRequest)
		to.Set(keySince, c.From.UTC().Format(time.RFC3339Nano))
		to.Set(keyUntil, c.To.UTC().Format(time.RFC3339Nano))
		b := bar{
			X: x(c.From), Width: max(1, x(c.To)-x(c.From)-2), To: Path + "?" + to.Encode(),
			Title: fmt.Sprintf("from %s: %d succeeded, %d failed, %d came to nothing", c.From.UTC().Format("2006-01-02 15:04"), c.Succeeded, c.Failed, c.None),
		}
		y := high
		for _, p := range []struct {
			of *piece
			n  int
		}{{&b.Good, c.Succeeded}, {&b.Off, c.None}, {&b.Bad, c.Failed}} {
			p.of.Height = min(tall(p.n), y)
			y -= p.of.Height
			p.of.Y = y
		}
		v.Bars = append(v.Bars, b)
	}
	for _, g := range found.Gaps {
		v.Holes = append(v.Holes, hole{x(g.From), max(2, x(g.To)-x(g.From)), "nothing was recorded: " + g.Why})
	}
	for i := range 5 {
		v.Ticks = append(v.Ticks, q.Since.Add(span*time.Duration(i)/4).UTC().Format("2006-01-02 15:04"))
	}
}

// outcomes are how they are shown.
var outcomes = map[history.Outcome]layout.Badge{
	history.Succeeded: layout.Mark("succeeded", "good"), history.Failed: layout.Mark("failed", "bad"), history.None: layout.Mark("came to nothing", "off"),
}

// rowOf shows one.
func rowOf(e *history.Entry, now time.Time) row {
	v := row{
		Kind: string(e.Kind), ID: layout.Link{Text: e.ID}, State: outcomes[e.Outcome], Ended: layout.Moment(e.Ended, now), Unsure: e.Unsure,
		Took: listing.Span(e.Ended.Sub(e.Begun)), Steps: steps(e), Host: e.Host, Reason: e.Reason, Event: e.EventID,
	}
	add := func(text, key string) {
		if text != "" {
			v.What = append(v.What, layout.Link{Text: text, To: Path + "?" + url.Values{key: {text}}.Encode()})
		}
	}
	switch e.Kind {
	case history.Build:
		v.ID.To = pageOf(e)
		v.Log = "/build-log/" + url.PathEscape(e.ID)
	case history.Node:
		v.ID.To = pageOf(e)
		add(e.Image, keyImage)
	case history.Request:
		v.ID.To = pageOf(e)
		v.Children = layout.Link{Text: "its nodes", To: Path + "?" + url.Values{keyRequest: {e.ID}}.Encode()}
	case history.Upload:
		add(e.Image, keyImage)
	case history.Action:
		add(e.Image, keyImage)
		v.Steps, v.Took = e.Became+" by "+e.Requestor, ""
	}
	for _, label := range e.Labels {
		add(label, keyLabel)
	}
	add(e.Provider, keyProvider)
	if e.Request != "" {
		v.What = append(v.What, layout.Link{Text: "for " + e.Request, To: Path + "?" + url.Values{keyID: {e.Request}}.Encode()})
	}
	return v
}

// pageOf is the page of what has a record still, or else what is known of it.
func pageOf(e *history.Entry) string {
	if e.Gone.IsZero() {
		return "/" + string(e.Kind) + "s/" + url.PathEscape(e.ID)
	}
	return Path + "?" + url.Values{keyKind: {string(e.Kind)}, keyID: {e.ID}, keyLast: {"30d"}}.Encode()
}

// steps says how long something was in each state.
func steps(e *history.Entry) string {
	var list []string
	for i, m := range e.Times {
		step := m.State
		if i+1 < len(e.Times) {
			step += " " + listing.Span(e.Times[i+1].At.Sub(m.At))
		}
		list = append(list, step)
	}
	if !e.Gone.IsZero() {
		if n := len(e.Times); n > 0 && e.Gone.After(e.Times[n-1].At) {
			list[n-1] += " " + listing.Span(e.Gone.Sub(e.Times[n-1].At))
		}
		list = append(list, "gone")
	}
	return strings.Join(list, " → ")
}
