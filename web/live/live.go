// Package live tells open pages that the tree has changed, by server-sent events.
package live

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxStreams is how many pages are told at a time; each costs a connection. A page that is not told is loaded by its
// reader.
const MaxStreams = 200

const (
	gather = 300 * time.Millisecond // what changes meanwhile is told at once
	sign   = 25 * time.Second       // of life, so that a connection that is gone is noticed
)

// Watch calls changed with the name of a part of the tree whenever anything in it has changed, until ctx
// ends; it may do so from several goroutines.
type Watch func(ctx context.Context, changed func(part string))

// Hub tells all pages that are open. It watches while there are any.
type Hub struct {
	watch Watch

	mu      sync.Mutex
	streams map[chan struct{}]map[string]bool // what each has not been told yet
	stop    context.CancelFunc                // of the watch
}

// New makes a Hub.
func New(watch Watch) *Hub { return &Hub{watch: watch, streams: map[chan struct{}]map[string]bool{}} }

// join makes a stream; false when there are too many.
func (h *Hub) join() (wake chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= MaxStreams {
		return nil, false
	}
	wake = make(chan struct{}, 1)
	h.streams[wake] = map[string]bool{}
	if h.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		go h.watch(ctx, h.changed)
	}
	return wake, true
}

// leave ends a stream, and the watch with the last.
func (h *Hub) leave(wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, wake)
	if len(h.streams) == 0 {
		h.stop()
		h.stop = nil
	}
}

// changed notes a change for each stream.
func (h *Hub) changed(part string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for wake, parts := range h.streams {
		parts[part] = true
		select {
		case wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// take is what a stream has not been told yet.
func (h *Hub) take(wake chan struct{}) (parts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for part := range h.streams[wake] {
		parts = append(parts, part)
	}
	clear(h.streams[wake])
	slices.Sort(parts)
	return parts
}

// ServeHTTP tells one page which parts of the tree change, until it is closed.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // which nothing can be told
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	wake, ok := h.join() //nolint:contextcheck // the watch outlives the page that began it
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d pages are told of changes already", MaxStreams), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(wake)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // or nginx keeps what should be seen now
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is to come; a test's recorder has none
	tell := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}
	if !tell("retry: 3000\n\n") {
		return
	}
	alive := time.NewTicker(sign)
	defer alive.Stop()
	for {
		select {
		case <-wake:
		case <-alive.C:
			if !tell(":\n\n") {
				return
			}
			continue
		case <-r.Context().Done():
			return
		}
		wait := time.NewTimer(gather)
		select {
		case <-wait.C:
		case <-r.Context().Done():
			wait.Stop()
			return
		}
		if !tell("event: changed\ndata: %s\n\n", strings.Join(h.take(wake), " ")) {
			return
		}
	}
}
