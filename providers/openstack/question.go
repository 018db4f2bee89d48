package openstack

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// question is a call that makes something which only its answer names. Once it is
// sent it is heard to its end, and its caller can tell whether it was answered. A
// nil question is any other call.
type question struct {
	asking func(context.Context) error // before each sending; nil is nothing
	sent   atomic.Bool                 // and not answered
}

// questionKey marks the contexts of questions.
type questionKey struct{}

// hearing says that a call, once it was sent, is not called off with the
// context: only its answer tells what was made.
func hearing(ctx context.Context, q *question) context.Context {
	return context.WithValue(ctx, questionKey{}, q)
}

func questionOf(ctx context.Context) *question {
	q, _ := ctx.Value(questionKey{}).(*question)
	return q
}

// open reports whether the service may have acted upon the call, or may do so yet,
// without our knowing.
func (q *question) open() bool { return q.sent.Load() }

// ask tells the caller that the call is about to be sent.
func (q *question) ask(ctx context.Context) error {
	if q == nil || q.asking == nil {
		return nil
	}
	return q.asking(ctx)
}

// watched notes when the call is sent. Before its headers have left, no service can
// act upon it.
func (q *question) watched(ctx context.Context) context.Context {
	if q == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { q.sent.Store(true) }})
}

// answered takes an answer over. A refusal is the end, and so is a failure that the
// service itself tells of, under a request id. What a gateway says of a service that
// did not answer it is no answer; nor is success, until its body was read.
func (q *question) answered(resp *http.Response) {
	if q == nil {
		return
	}
	switch status := resp.StatusCode; {
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
	case status >= http.StatusInternalServerError && requestID(resp.Header) == "":
	case status < http.StatusBadRequest:
	default:
		q.sent.Store(false)
	}
}

// outlasting is the context of one try: the call's own or, where the answer is
// to be heard, one that ends a while later.
func (t *transport) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	if questionOf(ctx) == nil {
		return ctx, func() {}
	}
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(t.pace.hearing)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(ctx))
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel(nil)
	}
}
