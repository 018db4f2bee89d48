package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"poolkeeper/zkmodel/hook"
)

// How much hooks take.
const (
	hookBody     = 1 << 20         // bytes of one request
	hookReaders  = 16              // requests whose bodies are read at the same time
	hookReserved = 8               // more of these for networks that have signed a delivery correctly
	hookPerNet   = 8               // of these for each network of senders
	hookProven   = 1000            // networks that are remembered to have signed
	hookBurst    = 30              // deliveries of one hook at once
	hookEvery    = time.Second     // and then one each
	hookPatience = 8 * time.Second // until it is stored; GitHub waits ten
)

// Hooks takes what others tell of. A hook.Desk is one.
type Hooks interface {
	// Hook is a hook by its name; false when there is none.
	Hook(name string) (hook.Settings, bool)
	// Keep stores a delivery, and reports false when it is known already.
	Keep(ctx context.Context, d *hook.Delivery) (bool, error)
	// Count counts what came to a hook.
	Count(hook, result string)
}

// hookDoor is what all requests to hooks share.
type hookDoor struct {
	mu      sync.Mutex
	rates   map[string]*rate.Limiter  // by hook that there is
	reading map[netip.Prefix]int      // bodies that are being read, by network of the sender
	total   int                       // the sum of reading
	proven  map[netip.Prefix]struct{} // networks that have signed a delivery correctly
}

func newHookDoor() *hookDoor {
	return &hookDoor{rates: map[string]*rate.Limiter{}, reading: map[netip.Prefix]int{}, proven: map[netip.Prefix]struct{}{}}
}

// enter takes a place to read a body from a network; ok is false if there is none. Slow senders without the secret can thus
// neither take all places from one network, nor those reserved for networks that have signed before.
func (d *hookDoor) enter(from netip.Prefix) (leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	most := hookReaders
	if _, proven := d.proven[from]; proven {
		most += hookReserved
	}
	if d.total >= most || d.reading[from] >= hookPerNet {
		return nil, false
	}
	d.total++
	d.reading[from]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.total--
		if d.reading[from]--; d.reading[from] == 0 {
			delete(d.reading, from)
		}
	}, true
}

// prove remembers that a network has signed a delivery correctly. If there are too many, it forgets an arbitrary one.
func (d *hookDoor) prove(from netip.Prefix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other := range d.proven {
		if len(d.proven) < hookProven {
			break
		}
		delete(d.proven, other)
	}
	d.proven[from] = struct{}{}
}

// senderNetwork is the network of the client of a request: a /24 of IPv4, or a /64 of IPv6, because senders and attackers
// have several addresses.
func senderNetwork(r *http.Request) netip.Prefix {
	client, _ := netip.ParseAddrPort(r.RemoteAddr) // the zero address if a test has none
	addr, bits := client.Addr().Unmap(), 64
	if addr.Is4() {
		bits = 24
	}
	network, _ := addr.Prefix(bits)
	return network
}

// allow reports whether a hook takes one more.
func (d *hookDoor) allow(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rates[name] == nil {
		d.rates[name] = rate.NewLimiter(rate.Every(hookEvery), hookBurst)
	}
	return d.rates[name].Allow()
}

// hookOf is the hook that a request is for, if there is one.
func (h *handler) hookOf(r *http.Request) (hook.Settings, bool) {
	name, ok := strings.CutPrefix(r.URL.Path, "/hooks/")
	if !ok || h.Hooks == nil {
		return hook.Settings{}, false
	}
	return h.Hooks.Hook(name)
}

// refusal is why a request to a hook is not taken.
type refusal struct {
	status int
	result string
	text   string
}

// serveHook takes what others tell a hook.
func (h *handler) serveHook(w http.ResponseWriter, r *http.Request, settings hook.Settings) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a hook is told by POST", http.StatusMethodNotAllowed)
		return
	}
	no := h.takeDelivery(w, r, settings)
	h.Hooks.Count(settings.Name, no.result)
	switch no.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "10")
		h.Logger.Warn("A hook does not take what it is told; its sender has to send it again", "hook", settings.Name, "client", r.RemoteAddr, "reason", no.text)
	case http.StatusOK, http.StatusAccepted:
	default:
		h.Logger.Info("A hook refuses what it is told", "hook", settings.Name, "client", r.RemoteAddr, "reason", no.text)
	}
	http.Error(w, no.text, no.status)
}

// takeDelivery checks a request, and stores what it says.
func (h *handler) takeDelivery(w http.ResponseWriter, r *http.Request, settings hook.Settings) refusal {
	from := senderNetwork(r)
	body, signature, no := h.readHook(w, r, from)
	if no.status != 0 {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		return no
	}
	if !signed(body, signature, settings.Secret) {
		return refusal{http.StatusForbidden, "refused", "X-Hub-Signature-256 is not that of this hook's secret"}
	}
	h.door.prove(from)
	d := &hook.Delivery{Hook: settings.Name, ID: r.Header.Get("X-GitHub-Delivery"), Event: r.Header.Get("X-GitHub-Event"), Priority: settings.Priority}
	if err := hook.CheckID(d.ID); err != nil {
		return refusal{http.StatusBadRequest, "refused", "X-GitHub-Delivery is no id: " + err.Error()}
	}
	describe(d, body)
	if why := settings.Wants(d); why != "" {
		return refusal{http.StatusOK, "unwanted", why}
	}
	if !h.door.allow(settings.Name) {
		return refusal{http.StatusTooManyRequests, "failed", "too many at once"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), hookPatience)
	defer cancel()
	fresh, err := h.Hooks.Keep(ctx, d)
	switch {
	case errors.Is(err, hook.ErrFull):
		return refusal{http.StatusServiceUnavailable, "failed", err.Error()}
	case err != nil:
		h.Logger.Error("What a hook was told cannot be stored; its sender has to send it again", "hook", d.Hook, "delivery", d.ID, "error", err)
		return refusal{http.StatusServiceUnavailable, "failed", "it cannot be stored; the daemon's log says why"}
	case !fresh:
		return refusal{http.StatusOK, "known", "it is known already"}
	}
	h.Logger.Info("A hook was told", "hook", d.Hook, "delivery", d.ID, "what", d.String())
	return refusal{http.StatusAccepted, "taken", "it is taken"}
}

// readHook checks the headers of a request before it reads the body, and returns the body with its signature.
func (h *handler) readHook(w http.ResponseWriter, r *http.Request, from netip.Prefix) (body, signature []byte, no refusal) {
	text, ok := strings.CutPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
	signature, err := hex.DecodeString(text)
	switch {
	case !ok || err != nil || len(signature) != sha256.Size:
		return nil, nil, refusal{http.StatusForbidden, "refused", "X-Hub-Signature-256 is missing or malformed"}
	case r.ContentLength > hookBody:
		return nil, nil, refusal{http.StatusRequestEntityTooLarge, "refused", "more than 1 MiB"}
	}
	leave, ok := h.door.enter(from)
	if !ok {
		return nil, nil, refusal{http.StatusServiceUnavailable, "failed", "too many send at once"}
	}
	defer leave()
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, hookBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, nil, refusal{http.StatusRequestEntityTooLarge, "refused", "more than 1 MiB"}
	case err != nil:
		return nil, nil, refusal{http.StatusBadRequest, "refused", "the request cannot be read"}
	}
	return body, signature, refusal{}
}

// signed reports whether a signature is that of a body, in a time that does not tell how
// much of it is right.
func signed(body, signature []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash takes all
	return secret != "" && hmac.Equal(signature, mac.Sum(nil))
}

// describe notes what the body of a delivery says, if it is a push's.
func describe(d *hook.Delivery, body []byte) {
	var push struct {
		Ref        string `json:"ref"`
		After      string `json:"after"`
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
	}
	_ = json.Unmarshal(body, &push) // one that is none says nothing
	d.Ref, d.Commit, d.Repository = push.Ref, push.After, push.Repository.FullName
}
