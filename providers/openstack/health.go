package openstack

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// How often a failure that goes on is logged: longer each time.
const (
	toldFirst = 10 * time.Second
	toldMost  = 10 * time.Minute
)

// believed is how long a failure counts that nobody tries again, while the cloud works
// otherwise.
const believed = 2 * time.Minute

// atLogin is the log-in among what may fail; the others are services, by address.
const atLogin = "log-in"

// health knows what keeps the cloud from being used: services that do not answer,
// and a log-in that fails. It tells at the first failure, whatever is repeated.
type health struct {
	log hclog.Logger
	now func() time.Time

	mu   sync.Mutex
	tell func(error)
	good map[string]bool     // services that have answered properly
	bad  map[string]*failing // by what fails
}

// failing is something that fails.
type failing struct {
	err    error
	seen   time.Time // when it failed last
	told   time.Time // when it was logged last
	silent time.Duration
}

func newHealth(log hclog.Logger) *health {
	return &health{log: log, now: time.Now, good: map[string]bool{}, bad: map[string]*failing{}}
}

// Tell implements providers.Teller.
func (p *Provider) Tell(tell func(error)) {
	p.health.mu.Lock()
	defer p.health.mu.Unlock()
	p.health.tell = tell
	if first := p.health.first(); first != nil {
		tell(first)
	}
}

// answered judges one try of a call: no answer is trouble, and so is one that says
// that the service is not there, as long as it has never been.
func (h *health) answered(req *http.Request, resp *http.Response, err error) {
	where := req.URL.Host
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		h.note(where, fmt.Errorf("the certificate of %s is not trusted, name its authority with cacert in clouds.yaml: %w", where, err))
		return
	}
	if err != nil {
		h.note(where, fmt.Errorf("%s does not answer: %w", where, err))
		return
	}
	h.mu.Lock()
	good := h.good[where]
	h.mu.Unlock()
	if resp.StatusCode >= http.StatusInternalServerError {
		if !good {
			h.note(where, fmt.Errorf("%s answers %s", where, resp.Status))
		}
		return
	}
	if good {
		h.note(where, nil)
		return
	}
	h.mu.Lock()
	h.good[where] = true
	h.mu.Unlock()
	h.note(where, nil)
}

// note takes over that something fails, or with nil that it does not any more.
func (h *health) note(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.bad[what]
	if err == nil && known == nil {
		return
	}
	before := text(h.first())
	now := h.now()
	switch {
	case err == nil:
		delete(h.bad, what)
		h.log.Info("Cloud can be used again", "what", what)
	case known == nil:
		h.bad[what] = &failing{err: err, seen: now, told: now, silent: toldFirst}
		if what == atLogin { // each try says the same
			h.bad[what].silent = toldMost
		}
		h.log.Warn("Cloud cannot be used; calls are repeated", "what", what, "error", err)
	default:
		known.err, known.seen = err, now
		if now.Sub(known.told) >= known.silent {
			known.told, known.silent = now, min(2*known.silent, toldMost)
			h.log.Warn("Cloud still cannot be used; calls are repeated", "what", what, "error", err)
		}
	}
	if first := h.first(); h.tell != nil && text(first) != before {
		h.tell(first)
	}
}

// works notes that the cloud does what it is asked for, so that failures count no more
// that are old.
func (h *health) works() {
	h.mu.Lock()
	var old []string
	for what, f := range h.bad {
		if h.now().Sub(f.seen) >= believed {
			old = append(old, what)
		}
	}
	h.mu.Unlock()
	for _, what := range old {
		h.note(what, nil)
	}
}

// first is what is told of all that fails: a service that does not answer explains a
// log-in that fails. The caller holds the lock.
func (h *health) first() error {
	var login error
	for _, what := range slices.Sorted(maps.Keys(h.bad)) {
		if what != atLogin {
			return h.bad[what].err
		}
		login = h.bad[what].err
	}
	return login
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
