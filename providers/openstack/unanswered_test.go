package openstack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"poolkeeper/providers"
)

// bare is a fault that answers as a gateway does, which has no request ids.
func bare(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Del("X-Openstack-Request-Id")
		return answer(status)(w, r)
	}
}

// A creation that was sent and not answered is not asked for again by the provider, and
// the caller is told; what Nova itself answered, or what never left, is tried again.
func TestCreationWithoutAnswer(t *testing.T) {
	t.Parallel()
	half := func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"half`)
		panic(http.ErrAbortHandler)
	}
	garbled := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "<html>")
		return true
	}
	for name, c := range map[string]struct {
		fault      func(s *stub) func(http.ResponseWriter, *http.Request) bool
		unanswered bool
	}{
		"connection cut": {func(*stub) func(http.ResponseWriter, *http.Request) bool { return hangUp }, true},
		"cut in between": {func(*stub) func(http.ResponseWriter, *http.Request) bool { return half }, true},
		"no words":       {func(*stub) func(http.ResponseWriter, *http.Request) bool { return garbled }, true},
		"time-out":       {func(s *stub) func(http.ResponseWriter, *http.Request) bool { return s.silence }, true},
		"502":            {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(502) }, true},
		"504":            {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(504) }, true},
		"gateway's 503":  {func(*stub) func(http.ResponseWriter, *http.Request) bool { return bare(503) }, true},
		"gateway's 500":  {func(*stub) func(http.ResponseWriter, *http.Request) bool { return bare(500) }, true},
		"Nova's 503":     {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(503) }, false},
		"Nova's 500":     {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(500) }, false},
		"too many":       {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(429) }, false},
		"conflict":       {func(*stub) func(http.ResponseWriter, *http.Request) bool { return answer(409) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			p := s.open(t, section())
			image := upload(t, p)
			if _, err := p.ListNodes(t.Context()); err != nil { // logs in
				t.Fatal(err)
			}
			p.pace.call = 300 * time.Millisecond
			s.fail("POST /compute/v2.1/servers", 1, c.fault(s))
			asked := 0
			node := nodeSpec(image)
			node.Asking = func(context.Context) error { asked++; return nil }
			id, err := p.CreateNode(t.Context(), node)
			if c.unanswered {
				if !errors.Is(err, providers.ErrUnanswered) || asked != 1 || len(s.servers) != 0 {
					t.Errorf("CreateNode gave %q, %v; told %d times, %d servers", id, err, asked, len(s.servers))
				}
				return
			}
			if err != nil || asked != 2 || len(s.servers) != 1 {
				t.Errorf("CreateNode gave %q, %v; told %d times, %d servers", id, err, asked, len(s.servers))
			}
		})
	}
}

// A cloud that cannot be reached was not asked, nor is one that must not be.
func TestCreationThatNeverLeft(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	p := s.open(t, section())
	p.pace.total = 50 * time.Millisecond
	image := upload(t, p)
	forbidden := errors.New("the record cannot be written")
	node := nodeSpec(image)
	node.Asking = func(context.Context) error { return forbidden }
	if _, err := p.CreateNode(t.Context(), node); !errors.Is(err, forbidden) || errors.Is(err, providers.ErrUnanswered) || len(s.servers) != 0 {
		t.Errorf("CreateNode gave %v; %d servers", err, len(s.servers))
	}
	node.Asking = func(context.Context) error {
		p.login.close()           // its idle connections
		return s.Listener.Close() // after the list was read
	}
	_, err := p.CreateNode(t.Context(), node)
	if !errors.Is(err, providers.ErrTransient) || errors.Is(err, providers.ErrUnanswered) {
		t.Errorf("without a connection CreateNode gave %v", err)
	}
}

// An upload that ends while Glance creates its image names that image: it can be deleted once Glance has created it.
func TestUploadEndsBeforeItsImageIsCreated(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	p := s.open(t, section())
	if _, err := p.ListImages(t.Context()); err != nil { // logs in
		t.Fatal(err)
	}
	p.pace.hearing = 100 * time.Millisecond
	s.fail("POST /image/v2/images", 1, s.silence)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := describe(t, imageFile(t))
	asked := ""
	up.Asking = func(_ context.Context, id string) error {
		asked = id
		time.AfterFunc(50*time.Millisecond, cancel)
		return nil
	}
	if _, err := p.UploadImage(ctx, up); !errors.Is(err, providers.ErrUnanswered) || !errors.Is(err, context.Canceled) || asked == "" {
		t.Errorf("UploadImage: %v, asked for %q", err, asked)
	}
	// Glance answers: then nothing is left, and nothing is unanswered.
	forbidden := errors.New("the record cannot be written")
	up.Asking = func(_ context.Context, id string) error { return forbidden }
	if _, err := p.UploadImage(t.Context(), up); !errors.Is(err, forbidden) || errors.Is(err, providers.ErrUnanswered) || len(s.images) != 0 {
		t.Errorf("UploadImage without a record: %v, %d images", err, len(s.images))
	}
	s.fail("/file", 100, answer(400))
	up.Asking = func(_ context.Context, id string) error { asked = id; return nil }
	if _, err := p.UploadImage(t.Context(), up); err == nil || errors.Is(err, providers.ErrUnanswered) || len(s.images) != 0 {
		t.Errorf("UploadImage with an answer: %v, %d images", err, len(s.images))
	}
}
