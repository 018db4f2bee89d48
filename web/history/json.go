package history

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"poolkeeper/zkmodel/history"
)

// Version is that of the JSON: keys are added to it, and none is taken away.
const Version = "v1"

// answer is the JSON. Times are as RFC 3339 has them, in UTC; lengths of time are seconds.
type answer struct {
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	// Begun is when this daemon began to record; what had ended before is not there.
	Begun   time.Time `json:"begun,omitzero"`
	Entries []entry   `json:"entries"`
	Gaps    []gap     `json:"gaps"`
	Counts  []counts  `json:"counts,omitempty"`
	// Counted is the time from which on all is counted, where there is too much for one answer.
	Counted time.Time `json:"counted_since,omitzero"`
	Next    string    `json:"next,omitempty"` // path of the next page
}

type entry struct {
	Kind     history.Kind     `json:"kind"`
	ID       string           `json:"id"`
	State    string           `json:"state"`
	Outcome  history.Outcome  `json:"outcome"`
	Reason   string           `json:"reason,omitempty"`
	Begun    time.Time        `json:"begun"`
	Ended    time.Time        `json:"ended"`
	Gone     time.Time        `json:"gone,omitzero"`
	Duration float64          `json:"duration"` // from begun to ended
	Unsure   bool             `json:"unsure"`   // it ended, or went, in a gap: that was no later
	Times    []history.Moment `json:"times"`

	Image     string   `json:"image,omitempty"`
	Build     string   `json:"build,omitempty"`
	Provider  string   `json:"provider,omitempty"`
	Pool      string   `json:"pool,omitempty"`
	Labels    []string `json:"labels,omitempty"`
	Host      string   `json:"host,omitempty"`
	Request   string   `json:"request,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
	Requestor string   `json:"requestor,omitempty"`
	EventID   string   `json:"event_id,omitempty"`
	Tenant    string   `json:"tenant,omitempty"`
}

type gap struct {
	history.Gap

	Duration float64 `json:"duration"`
}

type counts struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	None      int       `json:"none"`
}

// ServeJSON answers /history.json.
func (h *Pages) ServeJSON(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	q, err := parse(values, h.Now())
	if err == nil {
		q.Limit, err = parseLimit(values.Get(keyLimitKey))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case h.turn() <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	found, err := h.findInTurn(q)
	if err != nil {
		h.Logger.Error("Cannot read history", "error", err)
		http.Error(w, "the history cannot be read; the daemon's log says why", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answerOf(found, q, values)) // the client may be gone
}

// findInTurn reads, and gives the turn back, also where reading panics.
func (h *Pages) findInTurn(q history.Query) (*history.Answer, error) {
	defer func() { <-h.turn() }()
	return h.Store.Find(q)
}

func answerOf(found *history.Answer, q history.Query, values url.Values) *answer {
	a := &answer{
		Version: Version, Since: q.Since.UTC(), Until: q.Until.UTC(), Begun: found.Begun, Counted: found.Counted,
		Entries: []entry{}, Gaps: []gap{}, Next: next("/history.json", values, q, found.Next),
	}
	for _, e := range found.Entries {
		a.Entries = append(a.Entries, entry{
			Kind: e.Kind, ID: e.ID, State: e.Became, Outcome: e.Outcome, Reason: e.Reason, //nolint:gocritic // a table
			Begun: e.Begun, Ended: e.Ended, Gone: e.Gone, Duration: e.Ended.Sub(e.Begun).Seconds(), Unsure: e.Unsure, Times: e.Times,
			Image: e.Image, Build: e.BuildID, Provider: e.Provider, Pool: e.Pool, Labels: e.Labels, Host: e.Host,
			Request: e.Request, Nodes: e.Nodes, Requestor: e.Requestor, EventID: e.EventID, Tenant: e.Tenant,
		})
	}
	for _, g := range found.Gaps {
		a.Gaps = append(a.Gaps, gap{g, g.To.Sub(g.From).Seconds()})
	}
	for _, c := range found.Counts {
		a.Counts = append(a.Counts, counts{c.From.UTC(), c.To.UTC(), c.Succeeded, c.Failed, c.None})
	}
	return a
}

// next is the page after one; it is of the same time, however late it is asked for.
func next(path string, values url.Values, q history.Query, place string) string {
	if place == "" {
		return ""
	}
	to := url.Values{}
	for key, list := range values {
		if key != keyLast && len(list) > 0 {
			to.Set(key, list[0])
		}
	}
	to.Set(keySince, q.Since.UTC().Format(time.RFC3339Nano))
	to.Set(keyUntil, q.Until.UTC().Format(time.RFC3339Nano))
	to.Set(keyBefore, place)
	return path + "?" + to.Encode()
}
