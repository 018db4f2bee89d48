package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// readiness is the JSON of /ready. Everybody gets the first two; Detail is for those who may
// read the page, as reasons may have a cloud's words.
type readiness struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	*readyDetail
}

// readyDetail is what a daemon says of itself.
type readyDetail struct {
	Version string       `json:"version"` // of this JSON
	Daemon  string       `json:"daemon"`
	Host    string       `json:"host"`
	Program string       `json:"program"` // its version
	Since   time.Time    `json:"since"`
	Checks  []readyCheck `json:"checks"`
}

// readyCheck is one of the things that a daemon needs for all of its work. Only the first
// makes it not ready: with the others wrong it does what it can.
type readyCheck struct {
	Name   string `json:"name"` // work, tree, configuration, providers
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// serveReady tells supervisors and load balancers whether to count on us: as
// Nodepool's OK, or as JSON for who asks for that and for no text.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept, Authorization, Origin")
	kind := negotiate(r.Header["Accept"], typeText, typeJSON)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	answer, text := readiness{Ready: true}, "OK"
	if err := h.notReady(); err != nil {
		answer.Ready, answer.Reason, text = false, err.Error(), fmt.Sprintf("not ready: %v\n", err)
	}
	if kind == typeJSON {
		w.Header().Set("Content-Type", typeJSON)
		if h.trusted(r) && r.Header.Get("Origin") == "" { // what any page of a browser may read has none
			answer.readyDetail = h.readyDetail(r, answer.Reason)
		}
	}
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if kind == typeJSON {
		_ = json.NewEncoder(w).Encode(answer) // the client may be gone
		return
	}
	fmt.Fprint(w, text)
}

// readyDetail is made anew for each answer.
func (h *handler) readyDetail(r *http.Request, why string) *readyDetail {
	stale := ""
	if err := h.synced(r.Context(), 0); err != nil {
		stale = err.Error()
	}
	var frozen []string
	if h.Guarded != nil {
		frozen = h.Guarded()
	}
	d := &readyDetail{Version: "v1", Daemon: h.Daemon, Host: h.Host, Program: h.Version, Since: h.since.UTC().Truncate(time.Second)}
	for _, c := range []struct{ name, wrong string }{
		{"work", why},
		{"tree", stale},
		{"configuration", strings.Join(frozen, "; ")},
		{"providers", strings.Join(h.providerTroubles(), "; ")},
	} {
		d.Checks = append(d.Checks, readyCheck{Name: c.name, OK: c.wrong == "", Detail: c.wrong})
	}
	return d
}

// providerTroubles says which providers this daemon cannot use, and why.
func (h *handler) providerTroubles() (list []string) {
	if h.Tree.Components == nil {
		return nil
	}
	short, _, _ := strings.Cut(h.Host, ".")
	here := func(c *zkmodel.Component) bool {
		return c.Broken == nil && (c.Hostname == h.Host || c.Hostname == short)
	}
	for _, c := range h.Tree.Components(h.Daemon) {
		for provider, why := range c.Troubles {
			if here(c) {
				list = append(list, provider+": "+why)
			}
		}
	}
	if h.Daemon == zkmodel.KindLauncher {
		for _, c := range h.Tree.Components(zkmodel.KindPool) {
			if here(c) && c.Trouble != "" {
				list = append(list, c.ProviderName+": "+c.Trouble)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list) // of several pools
}

// notReady is why the daemon is not ready; nil when it is.
func (h *handler) notReady() error {
	if h.Ready == nil {
		return nil
	}
	return h.Ready()
}
