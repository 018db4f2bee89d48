package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"poolkeeper/providers"
)

// cloudError is a failure as a daemon and its operator need it: the sentinel
// says what to do, the text what happened.
type cloudError struct {
	op      string        // what we were about to do
	kind    error         // one of package providers' sentinels
	status  int           // HTTP; 0 when there was no answer
	message string        // the cloud's own words
	request string        // the id under which the cloud has logged it
	pause   time.Duration // for which the cloud asked; 0 if it did not ask
	cause   error         // without an answer
}

// Error names what a cloud's operator asks for first: the request's id.
func (e *cloudError) Error() string {
	var detail []string
	if e.status != 0 {
		detail = append(detail, fmt.Sprintf("HTTP %d", e.status))
	}
	if e.request != "" {
		detail = append(detail, "request "+e.request)
	}
	text := fmt.Sprintf("%s: %s: %s", e.op, e.kind, e.message)
	if len(detail) > 0 {
		text += " (" + strings.Join(detail, ", ") + ")"
	}
	return text
}

// Pause returns the time for which the cloud asked (Retry-After).
func (e *cloudError) Pause() time.Duration { return e.pause }

// Unwrap gives the sentinel and, without an answer, the cause.
func (e *cloudError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// failure turns what a call gave into an error of package providers that names
// the provider. An ended ctx is not the cloud's failure and stays what it is.
func (p *Provider) failure(ctx context.Context, op string, err error) error {
	name := "provider " + p.cfg.Name + ": "
	if err != nil && strings.Contains(err.Error(), name) {
		name = "" // it was named further down
	}
	return failure(ctx, name+op, err)
}

// unheard is an error of what says nothing of the thing that was to be asked for: one
// that it is not there, or not as it should be, is the cloud's.
func unheard(err error) error {
	e := (*cloudError)(nil)
	if !errors.As(err, &e) || !errors.Is(e.kind, providers.ErrNotFound) && !errors.Is(e.kind, providers.ErrInvalid) {
		return err
	}
	plain := *e
	plain.kind = providers.ErrUnusable
	return &plain
}

func failure(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	if known := (*cloudError)(nil); errors.As(err, &known) {
		return fmt.Errorf("%s: %w", op, err)
	}
	for _, sentinel := range []error{
		providers.ErrInvalid, providers.ErrNotFound, providers.ErrQuota,
		providers.ErrTransient, providers.ErrUnusable, providers.ErrChecksum, providers.ErrNotSupported,
	} {
		if errors.Is(err, sentinel) {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	if renewal := (*gophercloud.ErrUnableToReauthenticate)(nil); errors.As(err, &renewal) {
		return failure(ctx, op+": renew the token", renewal.ErrReauth)
	}
	if answer := (gophercloud.ErrUnexpectedResponseCode{}); errors.As(err, &answer) {
		return answered(op, answer)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = fmt.Errorf("%s %s: %w", wrapped.Op, hostOf(wrapped.URL), wrapped.Err)
	}
	return &cloudError{op: op, kind: providers.ErrTransient, message: err.Error(), cause: err}
}

// answered judges an answer by its status, and by its words where OpenStack
// uses one status for several things.
func answered(op string, answer gophercloud.ErrUnexpectedResponseCode) error {
	pause, _ := providers.RetryAfter(answer.ResponseHeader, time.Now())
	e := &cloudError{
		op: op, status: answer.Actual, message: messageOf(answer.Body),
		request: requestID(answer.ResponseHeader), kind: providers.ErrTransient,
		pause: pause,
	}
	if e.message == "" {
		e.message = http.StatusText(e.status)
	}
	switch {
	case isQuota(e.status, e.message):
		e.kind = capacityError(e.message)
	case e.status == http.StatusUnauthorized:
		e.message = "the cloud refuses our credentials: " + e.message
	case rateLimited(&http.Response{StatusCode: e.status, Header: answer.ResponseHeader}, answer.Body):
		// A later call gets another answer, whatever the status.
	case e.status == http.StatusNotFound || e.status == http.StatusGone:
		e.kind = providers.ErrNotFound
	case e.status == http.StatusConflict || e.status == http.StatusRequestTimeout:
		// of the moment
	case e.status < http.StatusInternalServerError:
		e.kind = providers.ErrInvalid
	}
	return e
}

// rateLimited reports whether an answer refuses a call for now: 429, 413 with an object "overLimit" (older Nova, and the
// proxies of some public clouds), or any refusal with Retry-After.
func rateLimited(resp *http.Response, body []byte) bool {
	var answer struct {
		OverLimit json.RawMessage `json:"overLimit"`
	}
	_, asked := providers.RetryAfter(resp.Header, time.Time{})
	return asked || resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusRequestEntityTooLarge && json.Unmarshal(body, &answer) == nil && answer.OverLimit != nil
}

// is tells an answer's status.
func is(err error, status int) bool {
	e := (*cloudError)(nil)
	return errors.As(err, &e) && e.status == status || gophercloud.ResponseCodeIs(err, status)
}

// tag matches what Glance's HTML answers are made of.
var tag = regexp.MustCompile(`(?s)<(head|title|h1)>.*?</(head|title|h1)>|<[^>]*>`)

// messageOf finds the words for people in an answer: JSON of several shapes,
// or HTML.
func messageOf(body []byte) string {
	text := string(body)
	var parsed map[string]any
	if json.Unmarshal(body, &parsed) == nil {
		if found := messageIn(parsed); found != "" {
			text = found
		}
	}
	return providers.Words(tag.ReplaceAllString(text, " "))
}

// messageIn looks for {"message": …}, or that within one other mapping:
// {"forbidden": {"message": …}}, {"error": …}, {"NeutronError": …}.
func messageIn(parsed map[string]any) string {
	if text, ok := parsed["message"].(string); ok {
		return text
	}
	for _, value := range parsed {
		if inner, ok := value.(map[string]any); ok {
			if text, ok := inner["message"].(string); ok {
				return text
			}
		}
	}
	return ""
}

// requestID is the id under which a service has logged a request.
func requestID(header http.Header) string {
	for _, name := range []string{"X-Openstack-Request-Id", "X-Compute-Request-Id"} {
		if id := header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// hostOf shortens an address to what an operator needs of it.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return "the cloud"
}
