package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes is how many readers of metrics are served at a time.
const maxScrapes = 4

// handler holds what the pages need.
type handler struct {
	Options

	page      *page
	links     []string      // of the pages that there are
	followers chan struct{} // a place for each log that is followed
	patience  time.Duration // with a client that does not take the next piece
}

// newHandler fills in what the options leave open.
func newHandler(o Options) *handler {
	h := &handler{Options: o, followers: make(chan struct{}, maxFollowers), patience: writePatience}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Logger == nil {
		h.Logger = hclog.NewNullLogger()
	}
	h.page = newPage()
	return h
}

// routes puts the pages together.
func (h *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", h.serveStatus)
	mux.HandleFunc("/ready", h.serveReady)
	for _, e := range h.endpoints() {
		mux.HandleFunc(e.path, h.listing(e))
		h.links = append(h.links, e.path)
	}
	if h.Logs != nil {
		mux.HandleFunc("/log/{name}", h.serveLog)
	}
	if h.Gatherer != nil {
		mux.Handle("/metrics", promhttp.HandlerFor(h.Gatherer, promhttp.HandlerOpts{
			ErrorLog:            h.Logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn}),
			ErrorHandling:       promhttp.ContinueOnError, // what can be gathered is worth having
			MaxRequestsInFlight: maxScrapes,
		}))
		h.links = append(h.links, "/metrics")
	}
	h.links = append(h.links, "/ready")
	return h.observe(readOnly(h.secure(mux)))
}

// serveReady tells supervisors and load balancers whether to count on us.
func (h *handler) serveReady(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := h.notReady(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "not ready: %v\n", err)
		return
	}
	fmt.Fprint(w, "OK")
}

// notReady is why the daemon is not ready; nil when it is.
func (h *handler) notReady() error {
	if h.Ready == nil {
		return nil
	}
	return h.Ready()
}
