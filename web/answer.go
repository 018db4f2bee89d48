package web

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
)

// Bounds of one answer and of all that are under way.
const (
	maxBuffered = 1 << 20   // bytes: a smaller answer is kept until the client has it
	maxAnswer   = 128 << 20 // bytes: a larger one is refused
	maxStreams  = 4         // larger ones than maxBuffered at a time
)

// errTooLarge says that an answer would be larger than maxAnswer.
var errTooLarge = errors.New("the answer is too large")

// measure takes an answer, and keeps it as long as it is small.
type measure struct {
	sum   hash.Hash
	size  int64
	small bytes.Buffer
	limit int64
}

func newMeasure() *measure { return &measure{sum: fnv.New128a(), limit: maxAnswer} }

// Write implements io.Writer. Errors: errTooLarge.
func (m *measure) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	if m.size > m.limit {
		return 0, fmt.Errorf("%w: more than %d bytes", errTooLarge, m.limit)
	}
	_, _ = m.sum.Write(p) // a hash takes everything
	switch {
	case m.size <= maxBuffered:
		m.small.Write(p)
	case m.small.Cap() > 0:
		m.small = bytes.Buffer{}
	}
	return len(p), nil
}

// tag is the entity tag of what was written.
func (m *measure) tag() string { return fmt.Sprintf(`"%x"`, m.sum.Sum(nil)) }

// stream writes a large answer for the second time, straight to the client. Few
// clients are served so at a time: each keeps the rows in memory until it has
// them.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, size int64, write func(io.Writer) error) {
	if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		w.Header().Del("ETag")
		http.Error(w, fmt.Sprintf("%d large listings are being sent already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if r.Method == http.MethodHead {
		return
	}
	if err := write(w); err != nil {
		h.Logger.Debug("Listing was not taken whole by its client", "path", r.URL.Path, "error", err)
		panic(http.ErrAbortHandler) // the client must not take a part for all
	}
}
