package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"poolkeeper/web/buildlog"
	"poolkeeper/web/layout"
	"poolkeeper/web/site"
	"poolkeeper/zkmodel"
)

// page serves a page. It shows what is known at any time, and says so when that may be old.
// refresh=N loads it again every N seconds, where there is no script.
func (h *handler) page(of layout.Maker) http.HandlerFunc { return h.pageIn(h.renderers, of) }

// pageIn serves a page that is made in one of some places.
func (h *handler) pageIn(places chan struct{}, of layout.Maker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := h.status(r)
		body, err := inTurn(r.Context(), places, func() ([]byte, error) {
			p, err := of(r)
			if err != nil {
				return nil, err
			}
			if h.live == nil {
				p.Live = ""
			}
			h.acts.Dress(r, p)
			return h.layout.Render(p, status)
		})
		var away *layout.RedirectError
		switch {
		case errors.As(err, &away):
			http.Redirect(w, r, away.To, http.StatusSeeOther)
			return
		case errors.Is(err, layout.ErrNotFound):
			h.notFound(w, err, status)
			return
		case err != nil:
			h.renderFailed(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body) // the client may be gone
	}
}

// status is how the daemon is now.
func (h *handler) status(r *http.Request) layout.Status {
	status := layout.Status{Time: h.Now(), Refresh: refresh(r)}
	if err := h.notReady(); err != nil {
		status.NotReady = err.Error()
	}
	if err := h.synced(r.Context(), 0); err != nil {
		status.Stale = err.Error()
	}
	return status
}

// show sends a page that is made already.
func (h *handler) show(w http.ResponseWriter, r *http.Request, code int, p *layout.Page) {
	status := h.status(r)
	body, err := h.render(r.Context(), func() ([]byte, error) { return h.layout.Render(p, status) })
	if err != nil {
		h.renderFailed(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}

// notFound says that there is no such thing, on a page that leads on.
func (h *handler) notFound(w http.ResponseWriter, why error, status layout.Status) {
	body, err := h.layout.Render(layout.Missing(why), status)
	if err != nil {
		http.Error(w, layout.Visible(why.Error()), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write(body) // the client may be gone
}

// refresh is the number of seconds that was asked for; 0 for none.
func refresh(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("refresh"))
	if err != nil || n < 1 || n > 24*60*60 {
		return 0
	}
	return n
}

// logLink is the page of a build's log, if this host builds or the record says who serves it.
func (h *handler) logLink(b *zkmodel.Build) string {
	if buildlog.IsURL(b.Log) || h.Logs != nil && b.Broken == nil {
		return buildlog.PagePath(b.Image, b.ID)
	}
	return ""
}

// figures are the values of this daemon's registry that have a label of some value: counters,
// gauges, and of what is measured in time how often and how long on average.
func (h *handler) figures(label, name string) (list []site.Figure) {
	families, _ := h.Gatherer.Gather() // what can be gathered is worth having
	for _, family := range families {
		for _, m := range family.GetMetric() {
			of, others := false, []string{}
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					of = l.GetValue() == name
				} else {
					others = append(others, l.GetName()+" "+l.GetValue())
				}
			}
			h := m.GetHistogram()
			if value := figure(family.GetName(), m.GetGauge().GetValue()+m.GetCounter().GetValue(), h.GetSampleCount(), h.GetSampleSum()); of && value != "" {
				list = append(list, site.Figure{Name: family.GetName(), Labels: strings.Join(others, ", "), Value: value, Help: family.GetHelp()})
			}
		}
	}
	// How long things take comes first: there are few of these.
	slices.SortStableFunc(list, func(a, b site.Figure) int {
		return cmp.Compare(strings.Count(b.Value, " each"), strings.Count(a.Value, " each"))
	})
	return list
}

// figure is what a metric says, for people; "" for nothing: what has never happened, and levels of 0.
func figure(name string, value float64, count uint64, sum float64) string {
	switch {
	case count > 0:
		return fmt.Sprintf("%d, %.3g s each", count, sum/float64(count))
	case value == 0:
		return ""
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return time.Unix(int64(value), 0).UTC().Format("2006-01-02 15:04 UTC")
	}
	return strconv.FormatFloat(value, 'g', 6, 64)
}
