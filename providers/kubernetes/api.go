package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// retries is how often a call is repeated when the server asks for it with Retry-After.
const retries = 10

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
}

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

// do sends a request and returns the body of the answer. It repeats the request when the server
// asks for that.
//
// Errors: *statusError for an answer that is not a success.
func (c *cluster) do(ctx context.Context, r request) ([]byte, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	for try := 0; ; try++ {
		if err := c.pace.Wait(ctx); err != nil {
			return nil, err
		}
		data, pause, err := c.try(ctx, r, body)
		if pause < 0 || try == retries {
			return data, err
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// try sends a request once. pause is how long the server asks to wait before the next try; less
// than 0 is no other try.
func (c *cluster) try(ctx context.Context, r request, body []byte) (data []byte, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTime)
	defer cancel()
	address := *c.address
	address.Path, address.RawQuery = strings.TrimSuffix(address.Path, "/")+r.path, r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "poolkeeper")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	login := &credentials{}
	if c.isSecure() {
		if login, err = c.login.credentials(ctx); err != nil {
			return nil, -1, err
		}
		c.login.authorize(req, login)
	}
	asked := clock.Now(ctx)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, -1, err
	}
	c.calls.Answered(operation(req), clock.Now(ctx).Sub(asked))
	defer resp.Body.Close() //nolint:errcheck // only read
	if data, err = io.ReadAll(resp.Body); err != nil {
		return nil, -1, err
	}
	if resp.StatusCode/100 == 2 {
		return data, -1, nil
	}
	if resp.StatusCode == http.StatusUnauthorized {
		c.login.refused(login)
	}
	pause = -1
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode/100 == 5) {
		pause = time.Duration(max(0, seconds)) * time.Second
	}
	return nil, pause, failed(resp.StatusCode, data)
}
