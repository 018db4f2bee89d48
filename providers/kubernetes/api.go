package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

const (
	// retries is how often a call is repeated when the server asks for it with Retry-After.
	retries = 10
	// maxAnswer bounds an answer that we take into memory, in bytes: a list of 500 pods is a few MiB.
	maxAnswer = 64 << 20
)

// Reasons of the API server.
const (
	reasonForbidden     = "Forbidden"
	reasonNotFound      = "NotFound"
	reasonAlreadyExists = "AlreadyExists"
	reasonConflict      = "Conflict"
	reasonInvalid       = "Invalid"
	reasonBadRequest    = "BadRequest"
)

// statusOf has the status code of reasons.
var statusOf = map[string]int{
	reasonForbidden: http.StatusForbidden, reasonNotFound: http.StatusNotFound, reasonAlreadyExists: http.StatusConflict,
	reasonConflict: http.StatusConflict, reasonInvalid: http.StatusUnprocessableEntity, reasonBadRequest: http.StatusBadRequest,
}

// statusError is an answer that says that a call failed.
type statusError struct {
	Code            int
	Reason, Message string
	// Foreign says that the answer has no Status: something before the API server gave it.
	Foreign bool
	// limited says that the answer has Retry-After, and pause for how long it asks to wait.
	limited bool
	pause   time.Duration
}

// Pause returns the time for which the server asked (Retry-After).
func (e *statusError) Pause() time.Duration { return e.pause }

// Error returns the server's words.
func (e *statusError) Error() string {
	switch {
	case e.Foreign:
		return fmt.Sprintf("the server answered %d %s: %q", e.Code, http.StatusText(e.Code), providers.Words(e.Message))
	case e.Message == "":
		return fmt.Sprintf("the server answered %d %s", e.Code, e.Reason)
	}
	return e.Message
}

// is reports whether err is an answer for a reason. The code decides if the answer has none of our reasons.
func is(err error, reason string) bool {
	e, ok := errors.AsType[*statusError](err)
	if !ok {
		return false
	}
	_, known := statusOf[e.Reason]
	return e.Reason == reason || !known && e.Code == statusOf[reason] && reason != reasonAlreadyExists
}

// failed returns the error of an answer that is not a success. A Status is believed as it is: one
// without a code and a reason says nothing of what exists.
func failed(code int, body []byte) error {
	var s struct {
		Kind, Status, Reason, Message string
		Code                          int
	}
	if json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Status == "Failure" {
		return &statusError{Code: s.Code, Reason: s.Reason, Message: s.Message}
	}
	return &statusError{Code: code, Message: string(body), Foreign: true}
}

// request is one call of the API server.
type request struct {
	method, path string
	query        url.Values
	body         any // nil is none
}

// do sends a request and returns the body of the answer. It repeats the request when the server asks for that, and once with
// other credentials.
//
// Errors: *statusError for an answer that is not a success.
func (c *cluster) do(ctx context.Context, r request) (data []byte, err error) {
	var body []byte
	if r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	address := *c.address
	address.Path, address.RawQuery = strings.TrimSuffix(address.Path, "/")+r.path, r.query.Encode()
	renewed := false
	for try := 0; ; try++ {
		if held := c.polite.Hold(ctx, &address); held != nil {
			return nil, cmp.Or(err, held)
		}
		if err := c.pace.Wait(ctx); err != nil {
			return nil, err
		}
		var login *credentials
		data, login, err = c.try(ctx, r.method, &address, body)
		status, refused := errors.AsType[*statusError](err)
		switch {
		case !refused || try == retries:
			return data, err
		case status.limited && !isQuota(err):
		case status.Code == http.StatusUnauthorized && !renewed && c.login.renew(ctx, login):
			renewed = true
		default:
			return nil, err
		}
	}
}

// try sends a request once. login is what it logged in with.
func (c *cluster) try(ctx context.Context, method string, address *url.URL, body []byte) (data []byte, login *credentials, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "poolkeeper")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.isSecure() {
		if login, err = c.login.credentials(ctx); err != nil {
			return nil, nil, err
		}
		c.login.authorize(req, login)
	}
	asked := clock.Now(ctx)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, login, cmp.Or(providers.Untrusted(err, "certificate-authority in the kubeconfig"), err)
	}
	c.calls.Answered(operation(req), clock.Now(ctx).Sub(asked))
	c.polite.Note(ctx, address, resp)
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, login, err
	case len(data) > maxAnswer:
		return nil, login, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	case resp.StatusCode/100 == 2:
		return data, login, nil
	}
	err = failed(resp.StatusCode, data)
	if status, ok := errors.AsType[*statusError](err); ok {
		status.pause, status.limited = providers.RetryAfter(resp.Header, clock.Now(ctx))
	}
	return nil, login, err
}
