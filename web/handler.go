package web

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"poolkeeper/configs"
	"poolkeeper/web/actions"
	"poolkeeper/web/buildlog"
	past "poolkeeper/web/history"
	"poolkeeper/web/layout"
	"poolkeeper/web/live"
	"poolkeeper/web/site"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/history"
)

// maxScrapes is how many readers of metrics are served at a time.
const maxScrapes = 4

// maxRenderers is how many pages are made at a time. A page of thousands of
// nodes takes tens of milliseconds and megabytes, which the daemon's own work
// must not feel however many ask.
const maxRenderers = 2

// handler holds what the pages need.
type handler struct {
	Options

	site      *site.Site
	layout    *layout.Layout
	live      *live.Hub     // nil where nobody tells of changes
	renderers chan struct{} // a place for each page that is made
	readers   chan struct{} // a place for each page that reads ZooKeeper
	streams   chan struct{} // a place for each large listing that is sent
	door      *hookDoor
	logs      *buildlog.Handler
	past      *past.Pages   // nil without a history
	wasReady  atomic.Bool   // the daemon has been ready
	since     time.Time     // when the daemon began to serve this
	acts      *actions.Desk // nil where nobody may do anything
	patience  time.Duration // with a client that does not take the next piece
}

// newHandler fills in what the options leave open.
func newHandler(o Options) *handler {
	h := &handler{
		Options: o, patience: writePatience,
		renderers: make(chan struct{}, maxRenderers), readers: make(chan struct{}, 1),
		streams: make(chan struct{}, maxStreams), door: newHookDoor(),
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	h.since = h.Now()
	if h.Logger == nil {
		h.Logger = hclog.NewNullLogger()
	}
	h.logs = buildlog.NewHandler(h.Logs, h.Tree.Images, h.Logger)
	if watch := h.Tree.Watch; watch != nil {
		h.live = live.New(func(ctx context.Context, changed func(string)) {
			var beside sync.WaitGroup
			if besides := h.Tree.WatchBeside; besides != nil {
				beside.Go(func() { besides(ctx, func() { changed("beside") }) })
			}
			if session := h.Tree.WatchSession; session != nil {
				beside.Go(func() { session(ctx, func() { changed("session") }) })
			}
			watch(ctx, func(part zkmodel.Part) { changed(partNames[part]) })
			beside.Wait()
		})
	}
	if h.History != nil {
		h.past = &past.Pages{Store: h.History, Logger: h.Logger, Now: h.Now}
	}
	h.site = &site.Site{History: h.past != nil, Tree: h.Tree, Config: h.Config, Guarded: h.Guarded, Now: h.Now, Log: h.logLink, Explain: h.Explain}
	if h.Gatherer != nil {
		h.site.Figures = h.figures
	}
	if h.Operator != nil && h.Config != nil {
		h.acts = actions.New(actions.Options{
			Site: h.Operator, Access: func() *configs.WebApp { return &h.Config().WebApp }, Tree: h.Tree, Daemon: h.Daemon, Logger: h.Logger, Now: h.Now, Show: h.show, Past: h.History, KnownHost: h.knownHost,
		})
	}
	if h.History != nil {
		h.site.Times = func(kind history.Kind, id string) []history.Moment {
			times, _ := h.History.Times(kind, id) // without them the records tell
			return times
		}
	}
	h.layout = &layout.Layout{Site: layout.Site{Daemon: h.Daemon, Host: h.Host, Version: h.Version}, Nav: h.site.Nav(), Search: "/search"}
	return h
}

// partNames are how pages call parts of the tree.
var partNames = map[zkmodel.Part]string{
	zkmodel.PartImages: "images", zkmodel.PartNodes: "nodes", zkmodel.PartRequests: "requests", zkmodel.PartComponents: "components",
}

// routes puts the pages together.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range h.site.Routes() {
		mux.HandleFunc(r.Path, h.guarded(h.page(r.Page)))
	}
	for _, r := range h.site.Slow() {
		mux.HandleFunc(r.Path, h.guarded(h.pageIn(h.readers, r.Page)))
	}
	if h.live != nil {
		mux.HandleFunc("/live", h.guarded(h.live.ServeHTTP))
	}
	mux.HandleFunc("/ready", h.serveReady)
	mux.HandleFunc("/healthz", h.serveHealth)
	for _, e := range h.endpoints() {
		mux.HandleFunc(e.path, h.listing(e))
		h.layout.Links = append(h.layout.Links, e.path)
	}
	if h.Logs != nil {
		mux.HandleFunc("/log/{name}", h.guarded(h.logs.ServeLog))
		mux.HandleFunc("/build-log/{name}/follow", h.guarded(h.logs.ServeFollow))
	}
	if h.Logs != nil || h.Tree.Images != nil {
		mux.HandleFunc("/build-log/{name}", h.guarded(h.page(h.logs.Page)))
	}
	if h.past != nil {
		mux.HandleFunc(past.Path, h.guarded(h.page(h.past.Page)))
		mux.HandleFunc(past.Path+".json", h.guarded(h.past.ServeJSON))
	}
	if h.Gatherer != nil {
		mux.Handle("/metrics", promhttp.HandlerFor(h.Gatherer, promhttp.HandlerOpts{
			ErrorLog:            h.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
			ErrorHandling:       promhttp.ContinueOnError, // what can be gathered is worth having
			MaxRequestsInFlight: maxScrapes,
		}))
		h.layout.Links = append(h.layout.Links, "/metrics")
	}
	h.layout.Links = append(h.layout.Links, "/ready")
	return h.observe(h.secure(h.readOnly(mux)))
}

// render makes a page once it is its turn. Sending it is not part of that: a
// slow client holds up nobody.
func (h *handler) render(ctx context.Context, page func() ([]byte, error)) ([]byte, error) {
	return inTurn(ctx, h.renderers, page)
}

// inTurn makes a page in one of some places.
func inTurn(ctx context.Context, places chan struct{}, page func() ([]byte, error)) ([]byte, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return page()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renderFailed answers when a page could not be made.
func (h *handler) renderFailed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody waits for it any more, or we are to stop
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	h.Logger.Error("Cannot make page", "path", r.URL.Path, "error", err)
	http.Error(w, "the page could not be made; the daemon's log says why", http.StatusInternalServerError)
}
