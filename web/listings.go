package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// freshness is for how long an answer may be shown again.
const freshness = time.Second

// syncPatience is how long a request waits for a tree that is being read, at
// the start or after an outage.
const syncPatience = 2 * time.Second

// endpoint is one of Nodepool's listings.
type endpoint struct {
	path    string
	detail  bool // all columns, also to people
	guarded bool // not the same for everybody
	table   func(r *http.Request) *listing.Table
}

// endpoints are those that the daemon has the data for.
func (h *handler) endpoints() []endpoint {
	var all []endpoint
	if h.Tree.Images != nil {
		images := func(list func([]*zkmodel.Image, time.Time) *listing.Table) func(*http.Request) *listing.Table {
			return func(*http.Request) *listing.Table { return list(h.Tree.Images(), h.Now()) }
		}
		all = append(all,
			endpoint{path: "/image-list", table: images(listing.Uploads)},
			endpoint{path: "/dib-image-list", guarded: true, table: h.builds},
			endpoint{path: "/image-status", table: images(func(images []*zkmodel.Image, now time.Time) *listing.Table {
				return listing.Images(images, now, h.Configured)
			})})
	}
	if h.Tree.Nodes != nil {
		all = append(all, endpoint{path: "/node-list", detail: true, table: func(r *http.Request) *listing.Table {
			return listing.Nodes(wanted(h.Tree.Nodes(), r.URL.Query().Get("node_id")), h.Now()).WithoutText("reason") // Nodepool's has none
		}})
	}
	if h.Tree.Requests != nil {
		all = append(all, endpoint{path: "/request-list", table: func(*http.Request) *listing.Table {
			return listing.Requests(h.Tree.Requests())
		}})
	}
	if h.Tree.Components != nil {
		all = append(all, endpoint{path: "/label-list", table: func(*http.Request) *listing.Table {
			return listing.Labels(h.Tree.Components(zkmodel.KindPool))
		}})
	}
	return all
}

// builds lists the builds; the last lines of their logs are for those who may
// read the logs.
func (h *handler) builds(r *http.Request) *listing.Table {
	table := listing.Builds(h.Tree.Images(), h.Now())
	if !h.trusted(r) {
		table.Clear("tail")
	}
	return table
}

// wanted is the one node that was asked for; all when none was.
func wanted(nodes []*zkmodel.Node, id string) []*zkmodel.Node {
	if id == "" {
		return nodes
	}
	for _, n := range nodes {
		if n.ID == id {
			return []*zkmodel.Node{n}
		}
	}
	return nil
}

// listing serves an endpoint: as a table or JSON, to be kept for a second.
func (h *handler) listing(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Vary", "Accept")
		kind := negotiate(r.Header["Accept"], typeHTML, typeText, typeJSON)
		if kind == "" {
			http.Error(w, "a listing is text/plain or application/json", http.StatusNotAcceptable)
			return
		}
		ltime, err := ltimeOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := h.synced(r.Context(), ltime); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		h.answer(w, r, e, kind)
	}
}

// answer makes a listing of this moment, and sends it.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, e endpoint, kind string) {
	m := newMeasure()
	var write func(io.Writer) error
	_, err := h.render(r.Context(), func() (_ []byte, err error) {
		if write, err = e.writer(r, kind); err != nil {
			return nil, err
		}
		return nil, write(m)
	})
	switch {
	case errors.Is(err, listing.ErrColumn):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case errors.Is(err, errTooLarge):
		http.Error(w, err.Error()+"; fields= and node_id= choose a part of it", http.StatusInternalServerError)
		return
	case err != nil:
		h.renderFailed(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	if kind == typeJSON {
		w.Header().Set("Content-Type", typeJSON)
	}
	now := h.Now()
	keepers := "public"
	if e.guarded {
		w.Header().Add("Vary", "Authorization")
		keepers = "private"
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d, %s", int(freshness.Seconds()), keepers))
	w.Header().Set("ETag", m.tag())
	w.Header().Set("Expires", now.Add(freshness).UTC().Format(http.TimeFormat))
	if m.size > maxBuffered {
		h.stream(w, r, m.size, write)
		return
	}
	http.ServeContent(w, r, "", now, bytes.NewReader(m.small.Bytes()))
}

// writer takes the listing of a moment, to be written any number of times.
func (e endpoint) writer(r *http.Request, kind string) (func(io.Writer) error, error) {
	table := e.table(r)
	if fields := r.URL.Query().Get("fields"); fields != "" {
		var err error
		if table, err = table.Select(strings.Split(fields, ",")...); err != nil {
			return nil, err
		}
	}
	if kind == typeJSON {
		return table.WriteJSON, nil
	}
	return func(to io.Writer) error { return table.WriteText(to, e.detail) }, nil
}

// ltimeOf is the logical time that a request wants to see; 0 for none.
func ltimeOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("ltime")
	if text == "" {
		return 0, nil
	}
	ltime, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ltime < 0 {
		return 0, fmt.Errorf("ltime=%.40q is no logical time: `poolkeeper ltime` prints one", text)
	}
	return ltime, nil
}

// synced waits a moment for the tree, as it was at a logical time at least: a
// listing is complete or an error.
func (h *handler) synced(ctx context.Context, ltime int64) error {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	if h.Tree.WaitSynced != nil {
		if err := h.Tree.WaitSynced(ctx); err != nil {
			return fmt.Errorf("not in step with ZooKeeper: %w", err)
		}
	}
	if ltime != 0 && h.Tree.WaitFor != nil {
		if err := h.Tree.WaitFor(ctx, ltime); err != nil {
			return fmt.Errorf("not yet at logical time %d: %w", ltime, err)
		}
	}
	return nil
}
