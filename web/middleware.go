package web

import (
	"net/http"
	"time"

	"poolkeeper/web/layout"
)

// readOnly refuses whatever is not a plain read, on every path but those of hooks and of what people do.
func (h *handler) readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if settings, ok := h.hookOf(r); ok { // which says itself what it takes
			h.serveHook(w, r, settings)
			return
		}
		if h.acts.Takes(r) {
			h.acts.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here: GET and HEAD only", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// secure sets the headers that keep a browser from doing more with an answer
// than to show it.
func (h *handler) secure(next http.Handler) http.Handler {
	policy := layout.Policy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
		if len(r.TransferEncoding) > 0 {
			// A request that also has a Content-Length must end the connection (RFC 9112, section 6.3). net/http has removed that header.
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// observe logs every request, and gives the client time for every piece of the
// answer instead of all of it: a log of hours is as fine as a page.
func (h *handler) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		o := &observed{
			ResponseWriter: w, control: http.NewResponseController(w),
			patience: h.patience, status: http.StatusOK,
		}
		defer func() { // also when a handler breaks off
			h.Logger.Debug("Served", "method", r.Method, "path", r.URL.Path, "client", r.RemoteAddr,
				"status", o.status, "bytes", o.bytes, "took", time.Since(start))
		}()
		next.ServeHTTP(o, r)
	})
}

// observed is a ResponseWriter that prolongs the deadline and remembers what
// was written.
type observed struct {
	http.ResponseWriter

	control  *http.ResponseController
	patience time.Duration
	status   int
	bytes    int64
}

// WriteHeader remembers the status.
func (o *observed) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

// Write counts, and prolongs the deadline.
func (o *observed) Write(p []byte) (int, error) {
	o.prolong()
	n, err := o.ResponseWriter.Write(p)
	o.bytes += int64(n)
	return n, err
}

// FlushError prolongs the deadline, and flushes.
func (o *observed) FlushError() error {
	o.prolong()
	return o.control.Flush()
}

// prolong gives the client time from now on. A test's recorder has no deadline.
func (o *observed) prolong() { _ = o.control.SetWriteDeadline(time.Now().Add(o.patience)) }

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
