package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

const (
	// readyEvery is the interval between checks until the daemon has been ready.
	readyEvery = 100 * time.Millisecond
	// alivePatience is how long the main loop may take to answer /healthz.
	alivePatience = 10 * time.Second
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

// serveReady answers OK, or JSON if the client prefers it. As Nodepool's, the answer stays 200 once the daemon has been
// ready. With strict=1 the answer is 503 whenever the daemon is not ready.
func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept, Authorization, Origin")
	kind := negotiate(r.Header["Accept"], typeText, typeJSON)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	answer, text := readiness{Ready: true}, "OK"
	err := h.notReady()
	if strict, _ := strconv.ParseBool(r.URL.Query().Get("strict")); err != nil && (strict || !h.wasReady.Load()) {
		answer.Ready, answer.Reason, text = false, err.Error(), fmt.Sprintf("not ready: %v\n", err)
	}
	if kind == typeJSON {
		w.Header().Set("Content-Type", typeJSON)
		if h.trusted(r) && r.Header.Get("Origin") == "" { // what any page of a browser may read has none
			answer.readyDetail = h.readyDetail(r, err)
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
func (h *handler) readyDetail(r *http.Request, notReady error) *readyDetail {
	why := ""
	if notReady != nil {
		why = notReady.Error()
	}
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
	if h.Ready != nil {
		if err := h.Ready(); err != nil {
			return err
		}
	}
	h.wasReady.Store(true)
	return nil
}

// awaitReady returns when the daemon has been ready, whether or not a client asks for it, or ctx has ended.
func (h *handler) awaitReady(ctx context.Context) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for h.notReady() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// serveHealth answers whether the process and its main loop are alive, independent of ZooKeeper.
func (h *handler) serveHealth(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if h.Alive != nil {
		ctx, cancel := context.WithTimeout(r.Context(), alivePatience)
		defer cancel()
		if err := h.Alive(ctx); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "not healthy: %v\n", err)
			return
		}
	}
	fmt.Fprint(w, "OK")
}
