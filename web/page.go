package web

import (
	"errors"
	"net/http"
	"strconv"

	"poolkeeper/web/layout"
)

// route is a page for people.
type route struct {
	path string
	page layout.Maker
}

// page serves a page. It shows what is known at any time, and says so when that may be old.
// refresh=N loads it again every N seconds, where there is no script.
func (h *handler) page(make layout.Maker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := layout.Status{Time: h.Now(), Refresh: refresh(r)}
		if err := h.notReady(); err != nil {
			status.NotReady = err.Error()
		}
		if err := h.synced(r.Context(), 0); err != nil {
			status.Stale = err.Error()
		}
		body, err := h.render(r.Context(), func() ([]byte, error) {
			p, err := make(r)
			if err != nil {
				return nil, err
			}
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
