package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs/clock"
)

// longestHold bounds how long Courtesy holds a call back. A call that would have to wait longer fails.
const longestHold = time.Minute

// RetryAfter returns how long an answer asks the client to wait, and whether it asks (RFC 9110, section 10.2.3: a number of seconds or a
// date). A date that has passed, and a value that is neither, ask for 0.
func RetryAfter(header http.Header, now time.Time) (wait time.Duration, asked bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, true
}

// PauseOf returns how long the cloud asked to wait before the operation that failed with err is tried again; 0 if it did not ask.
func PauseOf(err error) time.Duration {
	var asks interface{ Pause() time.Duration }
	if errors.As(err, &asks) {
		return asks.Pause()
	}
	return 0
}

// Courtesy holds calls back while a service asks its clients to wait: after an answer of 400 or more with Retry-After, no further call goes
// to that service until the time is over. A service is a host and the first part of the path. The zero value is ready.
type Courtesy struct {
	mu    sync.Mutex
	until map[string]time.Time // by service
}

// Hold waits until calls to the service at an address are allowed.
//
// Errors: the cause of ctx's end; ErrTransient, with a PauseOf, if the wait would be longer than a minute.
func (c *Courtesy) Hold(ctx context.Context, to *url.URL) error {
	c.mu.Lock()
	until := c.until[service(to)]
	c.mu.Unlock()
	wait := until.Sub(clock.Now(ctx))
	switch {
	case wait <= 0:
		return nil
	case wait > longestHold:
		return &heldBack{to.Host, until, wait}
	}
	return clock.Sleep(ctx, wait)
}

// Note records what an answer from an address asks for.
func (c *Courtesy) Note(ctx context.Context, from *url.URL, resp *http.Response) {
	now := clock.Now(ctx)
	wait, _ := RetryAfter(resp.Header, now)
	if wait == 0 || resp.StatusCode < http.StatusBadRequest {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = map[string]time.Time{}
	}
	if until := now.Add(wait); until.After(c.until[service(from)]) {
		c.until[service(from)] = until
	}
}

// service returns the key of the service at an address.
func service(at *url.URL) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(at.Path, "/"), "/")
	return at.Host + "/" + first
}

// Transport returns next with Courtesy around each call.
func (c *Courtesy) Transport(next http.RoundTripper) http.RoundTripper { return courteous{c, next} }

// courteous is an http.RoundTripper with Courtesy.
type courteous struct {
	courtesy *Courtesy
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c courteous) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.courtesy.Hold(req.Context(), req.URL); err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		c.courtesy.Note(req.Context(), req.URL, resp)
	}
	return resp, err
}

// heldBack is the error of a call that Courtesy did not make.
type heldBack struct {
	host  string
	until time.Time
	wait  time.Duration
}

// Error names the host and the time.
func (h *heldBack) Error() string {
	return fmt.Sprintf("%s: %s asked its clients to wait until %s (Retry-After)", ErrTransient, h.host, h.until.UTC().Format("15:04:05 UTC"))
}

// Unwrap returns ErrTransient.
func (h *heldBack) Unwrap() error { return ErrTransient }

// Pause returns the time that is left.
func (h *heldBack) Pause() time.Duration { return h.wait }
