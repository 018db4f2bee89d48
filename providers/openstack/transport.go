package openstack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// maxAnswer bounds an answer that we take into memory, in bytes: a list of
// 1,000 servers is about 3 MiB.
const maxAnswer = 64 << 20

// transport is the one door through which every call leaves. It keeps the rate,
// repeats what may be repeated, and bounds the time of each try. Uploads of
// image data pass it unrepeated and unbounded, because only ctx knows how long
// they may take.
type transport struct {
	short   *http.Transport
	bulk    *http.Transport // for image data
	limiter *rate.Limiter
	polite  providers.Courtesy
	pace    pace
	log     hclog.Logger
	// told hears how each try ended whose caller still waits; nil is nobody.
	told func(req *http.Request, resp *http.Response, took time.Duration, err error)
	// ended is called for each try, also for image data; nil is no call.
	ended func(req *http.Request, resp *http.Response, took time.Duration, err error)
}

// newTransport makes a transport that waits every between two calls.
func newTransport(config *tls.Config, every time.Duration, pace pace, log hclog.Logger) *transport {
	limit := rate.Inf
	if every > 0 {
		limit = rate.Every(every)
	}
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	short := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: config,
		TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2: true,
	}
	bulk := short.Clone()
	// Ask before sending gigabytes to somebody who refuses them. HTTP/2 would
	// send them in small frames, and gains nothing here.
	bulk.ExpectContinueTimeout = 5 * time.Second
	bulk.ForceAttemptHTTP2 = false
	bulk.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	bulk.WriteBufferSize = 256 << 10
	return &transport{short: short, bulk: bulk, limiter: rate.NewLimiter(limit, 1), pace: pace, log: log}
}

// close ends the connections that wait for further calls.
func (t *transport) close() {
	t.short.CloseIdleConnections()
	t.bulk.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if data, ok := req.Body.(*imageData); ok {
		return t.stream(req, data)
	}
	var last *http.Response
	pace := t.pace
	if isDispensable(req.Context()) {
		pace.total = min(pace.total, dispensableTime/2)
	}
	resp, err := repeat(req.Context(), pace, func() (*http.Response, error) {
		resp, err := t.try(req)
		if resp != nil {
			last = resp
		}
		if err != nil {
			last = nil
		}
		return resp, t.judge(req, resp, err)
	})
	if err != nil && last != nil && req.Context().Err() == nil {
		return last, nil // the tries are used up: the caller shall see the answer
	}
	return resp, err
}

// stream sends image data, its length told in advance.
func (t *transport) stream(req *http.Request, data *imageData) (*http.Response, error) {
	if err := t.turn(req.Context(), req.URL); err != nil {
		return nil, errors.Join(err, data.Close())
	}
	sized := req.Clone(req.Context())
	sized.Body, sized.ContentLength = data, data.size
	sized.Header.Set("Expect", "100-continue")
	start := time.Now()
	resp, err := t.bulk.RoundTrip(sized)
	t.trace(req, resp, err, start)
	if err == nil {
		t.polite.Note(req.Context(), req.URL, resp)
	}
	return resp, err
}

// turn waits until the rate allows a call, and the service has not asked for a pause.
func (t *transport) turn(ctx context.Context, to *url.URL) error {
	if err := t.polite.Hold(ctx, to); err != nil {
		return err
	}
	err := t.limiter.Wait(ctx)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("wait for a call: %w: the rate of calls leaves no time: %w", context.DeadlineExceeded, err)
}

// try makes one call and reads the whole answer, so that a connection that dies
// in the middle of it is a failed try like any other.
func (t *transport) try(req *http.Request) (*http.Response, error) {
	if err := t.turn(req.Context(), req.URL); err != nil {
		return nil, backoff.Permanent(err)
	}
	ctx, release := t.outlasting(req.Context())
	defer release()
	q := questionOf(ctx)
	if err := q.ask(ctx); err != nil {
		return nil, backoff.Permanent(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.pace.call, fmt.Errorf("no answer within %s", t.pace.call))
	defer cancel()
	one := req.Clone(q.watched(ctx))
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		one.Body = body
	}
	start := time.Now()
	resp, err := t.short.RoundTrip(one)
	if err == nil {
		err = t.readWhole(resp)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	t.trace(req, resp, err, start)
	if t.told != nil && req.Context().Err() == nil {
		t.told(req, resp, time.Since(start), err)
	}
	if err != nil {
		return nil, err
	}
	t.polite.Note(ctx, req.URL, resp)
	q.answered(resp)
	resp.Request = req
	return resp, nil
}

// readWhole replaces an answer's body by its content.
func (t *transport) readWhole(resp *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if closing := resp.Body.Close(); err == nil {
		err = closing
	}
	if err == nil && len(content) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return err
}

// judge judges a try: nil ends the call, a permanent error ends it as well, any
// other error is a reason to try again.
func (t *transport) judge(req *http.Request, resp *http.Response, err error) error {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case err != nil && req.Context().Err() != nil:
		return backoff.Permanent(context.Cause(req.Context()))
	case errors.As(err, &certificate):
		return backoff.Permanent(err)
	case errors.As(err, &dial) && dial.Op == "dial": // nothing was sent
		return err
	case err != nil && repeatable(req):
		return err
	case err != nil:
		return backoff.Permanent(err)
	case !worthRepeating(req, resp):
		return nil
	}
	if wait, _ := providers.RetryAfter(resp.Header, clock.Now(req.Context())); wait > 0 {
		return &backoff.RetryAfterError{Duration: wait}
	}
	return fmt.Errorf("answered %s", resp.Status)
}

// worthRepeating reports whether a call that was answered like this may succeed if it is repeated. The service did not
// act on a call that it refused for its rate limit, so such a call is repeated whatever its method.
func worthRepeating(req *http.Request, resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return repeatable(req)
	}
	if resp.StatusCode < http.StatusBadRequest || resp.StatusCode > http.StatusBadGateway {
		return false
	}
	content, _ := io.ReadAll(resp.Body) // from memory, see readWhole
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return rateLimited(resp, content) && !isQuota(resp.StatusCode, string(content))
}

// idempotent marks a context whose calls may be repeated whatever their method.
type idempotent struct{}

// repeating says that the calls made with the context have the same effect
// however often they are made.
func repeating(ctx context.Context) context.Context {
	return context.WithValue(ctx, idempotent{}, true)
}

// repeatable reports whether a call may have been acted upon and yet be made
// again.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPut:
		return true
	}
	return req.Context().Value(idempotent{}) != nil || strings.HasSuffix(req.URL.Path, "/tokens")
}

// trace logs one try, and reports its end.
func (t *transport) trace(req *http.Request, resp *http.Response, err error, start time.Time) {
	if t.ended != nil {
		t.ended(req, resp, time.Since(start), err)
	}
	if !t.log.IsTrace() {
		return
	}
	fields := []any{"method", req.Method, "path", req.URL.Path, "took", time.Since(start)}
	if resp != nil {
		fields = append(fields, "status", resp.StatusCode, "request", requestID(resp.Header))
	}
	if err != nil {
		fields = append(fields, "error", err)
	}
	t.log.Trace("Call", fields...)
}
