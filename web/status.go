package web

import (
	_ "embed" // the pages
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
)

// maxRows is how many of a kind the page shows: more is for the listings.
const maxRows = 500

// view is the status page. A part that is not followed is nil.
type view struct {
	Troubles *rows[trouble]
	Images   *rows[imageView]
	Nodes    *nodesView
	Requests *rows[requestView]
	Daemons  *rows[daemonView]
}

// rows is a list that was cut off.
type rows[T any] struct {
	Shown []T
	Total int
}

// More is how many are not shown.
func (r rows[T]) More() int { return r.Total - len(r.Shown) }

// firstRows cuts a list off, and makes rows of what is left.
func firstRows[R, T any](all []R, row func(R) T) *rows[T] {
	shown := make([]T, 0, min(len(all), maxRows))
	for _, r := range all[:min(len(all), maxRows)] {
		shown = append(shown, row(r))
	}
	return &rows[T]{Shown: shown, Total: len(all)}
}

// snapshot is what a page is made from.
type snapshot struct {
	now      time.Time
	tree     Tree // what is followed
	images   []*zkmodel.Image
	nodes    []*zkmodel.Node
	requests []*zkmodel.Request
	daemons  []*zkmodel.Component // builders and launchers
	pools    []*zkmodel.Component
	trials   []*zkmodel.Validation
	ownLogs  bool // this host has logs
	guarded  []string
}

// trouble is one thing that needs attention, as it is shown.
type trouble struct {
	attention.Item

	Since layout.When
	Log   string // link
}

// troubles are what needs attention.
func (s *snapshot) troubles() []attention.Item {
	site := attention.Site{
		Now: s.now, Images: s.images, Nodes: s.nodes, Requests: s.requests, Daemons: s.daemons, Pools: s.pools,
		NoComponents: s.tree.Components == nil, Trials: s.trials, Guarded: s.guarded,
	}
	return site.Items()
}

// viewTrouble shows one.
func (s *snapshot) viewTrouble(i attention.Item) trouble {
	t := trouble{Item: i, Since: layout.Moment(i.Since, s.now)}
	if i.Log != nil {
		t.Log = s.logLink(i.Log)
	}
	t.Item.Log, t.Item.Since = nil, time.Time{} // not the page's to clean
	return t
}

// look takes a snapshot.
func (h *handler) look() *snapshot {
	s := &snapshot{now: h.Now(), tree: h.Tree, ownLogs: h.Logs != nil}
	if h.Guarded != nil {
		s.guarded = h.Guarded()
	}
	if h.Tree.Images != nil {
		s.images = h.Tree.Images()
	}
	if h.Tree.Nodes != nil {
		s.nodes = h.Tree.Nodes()
	}
	if h.Tree.Requests != nil {
		s.requests = h.Tree.Requests()
	}
	if list := h.Tree.Components; list != nil {
		s.daemons = append(append(s.daemons, list(zkmodel.KindBuilder)...), list(zkmodel.KindLauncher)...)
		s.pools = list(zkmodel.KindPool)
	}
	if h.Tree.Validations != nil {
		s.trials, _ = h.Tree.Validations("") // what is not read shows as being on trial
	}
	return s
}

// statusPage is the status page.
func (h *handler) statusPage(*http.Request) (*layout.Page, error) {
	v := &view{}
	h.look().fill(v)
	return &layout.Page{Template: statusTemplate, Section: "/", Count: v.Troubles.Total, Body: v}, nil
}

//go:embed status.html
var statusText string

var statusTemplate = layout.Parse(statusText)

// fill makes the parts of the page.
func (s *snapshot) fill(v *view) {
	v.Troubles = firstRows(s.troubles(), s.viewTrouble)
	if s.tree.Images != nil {
		v.Images = firstRows(s.images, s.viewImage)
	}
	if s.tree.Nodes != nil {
		v.Nodes = &nodesView{rows: *firstRows(s.nodes, s.viewNode), Counts: countNodes(s.nodes)}
	}
	if s.tree.Requests != nil {
		v.Requests = firstRows(s.requests, s.viewRequest)
	}
	if s.tree.Components != nil {
		v.Daemons = firstRows(append(slices.Clone(s.daemons), s.pools...), viewDaemon)
	}
}

// daemonView is one builder, launcher or pool.
type daemonView struct {
	Kind, Name string
	Host       string
	State      layout.Badge
	Version    string
	Labels     string
}

// viewDaemon shows a component.
func viewDaemon(c *zkmodel.Component) daemonView {
	d := daemonView{
		Kind: c.Kind, Name: listing.Words("-", c.ProviderName, c.PoolName), Host: c.Hostname,
		State: layout.StateBadge(c.State, c.Broken), Version: c.Version,
		Labels: strings.Join(c.SupportedLabels, ", "),
	}
	if c.Paused != nil && *c.Paused {
		d.State = layout.StateBadge("paused", nil)
	}
	if c.Trouble != "" {
		d.State = layout.Mark("cannot be used", "bad")
		d.Labels = strings.Join(slices.Concat(c.SupportedLabels, c.TroubledLabels), ", ")
	}
	if c.Broken != nil {
		d.Name = c.Name
	}
	return d
}
