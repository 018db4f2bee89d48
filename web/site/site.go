// Package site is the pages about a site: the overview, and a page for each image, build, node,
// request, provider and daemon, with the lists of them. It is handed functions of a mirror, and reads only.
package site

import (
	"context"
	"net/http"
	"time"

	"poolkeeper/configs"
	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/history"
	"poolkeeper/zkmodel/overview"
)

// Tree is what the daemon follows of the tree; a zkmodel.Mirror has these as
// methods. A nil part is not followed, and so has no pages. What is returned
// is only read.
type Tree struct {
	Images     func() []*zkmodel.Image
	Nodes      func() []*zkmodel.Node
	Requests   func() []*zkmodel.Request
	Components func(kind string) []*zkmodel.Component
	// Validations are the uploads under trial in a provider, or in all for "". Where they
	// are not followed, or cannot be read, it has fewer than there are.
	Validations func(provider string) ([]*zkmodel.Validation, error)
	// ProviderPauses are the providers that people have paused; nil is nobody knows.
	ProviderPauses func() []*zkmodel.ProviderPause
	// Beside is what of the tree the mirror does not have: waves, the fleet's configuration, limits
	// that clouds told, sinks of events; nil where nobody reads it, or nothing is known yet.
	Beside func() *overview.Beside
	// WatchBeside tells that something of that has changed, until ctx ends; nil where nobody tells.
	WatchBeside func(ctx context.Context, changed func())
	// WatchSession tells that the session with ZooKeeper has ended, or that there is another, until ctx
	// ends; nil where nobody tells.
	WatchSession func(ctx context.Context, changed func())
	// Watch tells of parts that have changed, by the names of zkmodel.Part, until ctx ends; nil where nobody tells.
	Watch func(ctx context.Context, changed func(zkmodel.Part))
	// WaitSynced returns once all parts have been read in the session that
	// lives; nil when that is always so.
	WaitSynced func(context.Context) error
	// WaitFor returns once the tree is shown as it was at a logical time, or
	// later; nil when it always is.
	WaitFor func(ctx context.Context, ltime int64) error
}

// Site makes the pages.
type Site struct {
	Tree Tree
	// Config is the configuration of the moment; nil when nobody knows it.
	Config func() *configs.Config
	// Guarded tells what of the configuration is not in effect; nil is nothing.
	Guarded func() []string
	Now     func() time.Time
	// Log is where the log of a build can be read; "" when nobody knows.
	Log func(*zkmodel.Build) string
	// Explain says what this host's builder has to do for an image, and why; nil where it builds nothing.
	Explain func(ctx context.Context, image string) ([]Reason, error)
	// History says that there is a page of what has ended.
	History bool
	// Times are the states that something has been in, and since when, as this daemon has seen them; nil
	// where nobody keeps them.
	Times func(kind history.Kind, id string) []history.Moment
	// Figures are what this daemon measures of a thing, by the label that names it; nil is
	// nothing.
	Figures func(label, name string) []Figure
}

// Reason is what a rule says of an image. Outcome is set if the rule decides its subject, and says what happens.
type Reason struct{ Subject, Rule, Speaks, Detail, Outcome string }

// Figure is one measured value.
type Figure struct{ Name, Labels, Value, Help string }

// Route is a page at a path, as http.ServeMux has it.
type Route struct {
	Path string
	Page layout.Maker
}

// Nav is the navigation.
func (s *Site) Nav() []layout.Link {
	nav := []layout.Link{{Text: "Overview", To: "/"}}
	add := func(is bool, text, to string) {
		if is {
			nav = append(nav, layout.Link{Text: text, To: to})
		}
	}
	add(s.Tree.Images != nil, "Images", "/images")
	add(s.Tree.Nodes != nil, "Nodes", "/nodes")
	add(s.Tree.Requests != nil, "Requests", "/requests")
	add(s.Tree.Components != nil, "Providers", "/providers")
	add(s.Tree.Components != nil, "Daemons", "/daemons")
	add(s.Tree.Beside != nil, "Waves", wavesPath)
	add(s.History, "History", historyPath)
	return nav
}

// Routes are the pages that there is something to show on.
func (s *Site) Routes() []Route {
	routes := []Route{{"/{$}", s.overview}, {"/attention", s.attention}, {"/search", s.search}}
	if s.Tree.Images != nil {
		routes = append(routes, Route{"/images", s.images}, Route{"/images/{image}", s.image}, Route{"/builds/{build}", s.build})
	}
	if s.Tree.Nodes != nil {
		routes = append(routes, Route{"/nodes", s.nodes}, Route{"/nodes/{node}", s.node})
	}
	if s.Tree.Requests != nil {
		routes = append(routes, Route{"/requests", s.requests}, Route{"/requests/{request}", s.request})
	}
	if s.Tree.Components != nil {
		routes = append(routes, Route{"/providers", s.providers}, Route{"/providers/{provider}", s.provider}, Route{"/daemons", s.daemons}, Route{"/daemons/{kind}/{host}", s.daemon})
	}
	if s.Tree.Beside != nil {
		routes = append(routes, Route{wavesPath, s.waves})
	}
	return routes
}

// Slow are the pages that read ZooKeeper, and so may take seconds: no other page should wait for them.
func (s *Site) Slow() []Route {
	if s.Tree.Images == nil || s.Explain == nil {
		return nil
	}
	return []Route{{"/images/{image}/explain", s.explain}}
}

// snapshot is what a page is made from.
type snapshot struct {
	*Site

	now      time.Time
	cfg      *configs.Config // empty when nobody knows it
	images   []*zkmodel.Image
	nodes    []*zkmodel.Node
	requests []*zkmodel.Request
	daemons  []*zkmodel.Component // builders and launchers
	pools    []*zkmodel.Component
	trials   []*zkmodel.Validation
	pauses   []*zkmodel.ProviderPause
	guarded  []string
	beside   *overview.Beside // nil when nobody knows
	made     *overview.Report // of all this, once it was asked for
}

// look takes a snapshot.
func (s *Site) look() *snapshot {
	look := &snapshot{Site: s, now: s.Now(), cfg: &configs.Config{}}
	if s.Config != nil {
		look.cfg = s.Config()
	}
	if s.Guarded != nil {
		look.guarded = s.Guarded()
	}
	if s.Tree.Images != nil {
		look.images = s.Tree.Images()
	}
	if s.Tree.Nodes != nil {
		look.nodes = s.Tree.Nodes()
	}
	if s.Tree.Requests != nil {
		look.requests = s.Tree.Requests()
	}
	if list := s.Tree.Components; list != nil {
		look.daemons = append(append(look.daemons, list(zkmodel.KindBuilder)...), list(zkmodel.KindLauncher)...)
		look.pools = list(zkmodel.KindPool)
	}
	if s.Tree.Validations != nil {
		look.trials, _ = s.Tree.Validations("") // what is not read shows as being on trial
	}
	if s.Tree.ProviderPauses != nil {
		look.pauses = s.Tree.ProviderPauses()
	}
	if s.Tree.Beside != nil {
		look.beside = s.Tree.Beside()
	}
	return look
}

// Items is what needs attention.
func (s *Site) Items() []attention.Item { return s.look().items() }

// items is what needs attention.
func (s *snapshot) items() []attention.Item { return s.report().Items }

// leftOut is what of this daemon's configuration is left out, as something is wrong with it.
func (s *snapshot) leftOut() (lines []string) {
	for _, f := range s.cfg.Frozen {
		lines = append(lines, f.String())
	}
	return lines
}

// log is where the log of a build can be read.
func (s *snapshot) log(b *zkmodel.Build) string {
	if s.Log == nil || b == nil {
		return ""
	}
	return s.Log(b)
}

// query is what a request asks for, of which lists are filtered.
func query(r *http.Request, key string) string { return r.URL.Query().Get(key) }
