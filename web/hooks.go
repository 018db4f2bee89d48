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
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"poolkeeper/zkmodel/hook"
)

// How much hooks take.
const (
	hookBody     = 1 << 20         // bytes of one request
	hookReaders  = 16              // requests whose bodies are read at a time
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
	readers chan struct{}

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by hook that there is
}

func newHookDoor() *hookDoor {
	return &hookDoor{readers: make(chan struct{}, hookReaders), rates: map[string]*rate.Limiter{}}
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
	body, no := h.readHook(w, r)
	if no.status != 0 {
		return no
	}
	if !signed(body, r.Header.Get("X-Hub-Signature-256"), settings.Secret) {
		return refusal{http.StatusForbidden, "refused", "X-Hub-Signature-256 is not that of this hook's secret"}
	}
	d := &hook.Delivery{Hook: settings.Name, ID: r.Header.Get("X-GitHub-Delivery"), Event: r.Header.Get("X-GitHub-Event")}
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

// readHook reads the body of a request.
func (h *handler) readHook(w http.ResponseWriter, r *http.Request) ([]byte, refusal) {
	select {
	case h.door.readers <- struct{}{}:
		defer func() { <-h.door.readers }()
	default:
		return nil, refusal{http.StatusServiceUnavailable, "failed", "too many send at once"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hookBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refusal{http.StatusRequestEntityTooLarge, "refused", "more than 1 MiB"}
	case err != nil:
		return nil, refusal{http.StatusBadRequest, "refused", "the request cannot be read"}
	}
	return body, refusal{}
}

// signed reports whether a signature is that of a body, in a time that does not tell how
// much of it is right.
func signed(body []byte, signature, secret string) bool {
	text, ok := strings.CutPrefix(signature, "sha256=")
	given, err := hex.DecodeString(text)
	if !ok || err != nil || secret == "" {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body) // a hash takes all
	return hmac.Equal(given, mac.Sum(nil))
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
