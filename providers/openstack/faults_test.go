package openstack

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// describe makes the upload of a file.
func describe(t *testing.T, path string) providers.ImageUpload {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := md5.Sum(data)
	return providers.ImageUpload{
		Name: "debian-1", Path: path, Format: "qcow2", Size: int64(len(data)), MD5: hex.EncodeToString(sum[:]),
		Metadata: map[string]string{providers.MetaProvider: "north", providers.MetaUpload: "0000000001"},
	}
}

// upload uploads an image that nodes can boot from.
func upload(t *testing.T, p *Provider) string {
	t.Helper()
	id, err := p.UploadImage(t.Context(), describe(t, imageFile(t)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func nodeSpec(image string) providers.NodeSpec {
	return providers.NodeSpec{
		NodeID: "0000000007", Hostname: "np0000000007", Pool: "main", Label: "small", ImageID: image,
		Metadata: map[string]string{
			providers.MetaProvider: "north", providers.MetaNode: "0000000007", providers.MetaPool: "main",
		},
	}
}

// Whatever happens to one call, the launch and the upload that it belongs to go
// on, and make one server and one image.
func TestFaultsOfTheMoment(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"401":               answer(401),
		"429":               answer(429),
		"503 Retry-After 0": answer(503, "Retry-After", "0"),
		"403 Retry-After":   answer(403, "Retry-After", "Thu, 01 Jan 2026 11:00:00 GMT"),
		"413 overLimit": func(w http.ResponseWriter, _ *http.Request) bool {
			reply(w, 413, map[string]any{"overLimit": map[string]any{"code": 413, "message": "This request was rate-limited."}})
			return true
		},
		"500":   answer(500),
		"502":   answer(502),
		"504":   answer(504),
		"reset": hangUp,
		"reset in the answer": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"half`) // then the connection ends
			panic(http.ErrAbortHandler)
		},
	} {
		for _, call := range []string{
			"POST /identity/v3/auth/tokens", "POST /image/v2/images", "GET /image/v2/images/",
			"GET /compute/v2.1/flavors/detail", "GET /network/v2.0/networks", "GET /compute/v2.1/servers/detail",
			"POST /compute/v2.1/servers", "DELETE /compute/v2.1/servers", "DELETE /image/v2/images",
		} {
			if name == "401" && strings.Contains(call, "tokens") {
				continue // that is a wrong password
			}
			t.Run(name+" "+call, func(t *testing.T) {
				t.Parallel()
				s := newStub(t)
				p := s.open(t, section())
				s.fail(call, 1, fault)
				lifeOf(t, s, p)
			})
		}
	}
}

// lifeOf uploads an image, launches a node from it, and deletes both.
func lifeOf(t *testing.T, s *stub, p *Provider) {
	t.Helper()
	image := upload(t, p)
	id, err := p.CreateNode(t.Context(), nodeSpec(image))
	if errors.Is(err, providers.ErrUnanswered) { // a launcher asks again when the server cannot come any more
		id, err = p.CreateNode(t.Context(), nodeSpec(image))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitNode(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if len(s.servers) != 1 || len(s.images) != 1 {
		t.Errorf("%d servers and %d images, want one of each", len(s.servers), len(s.images))
	}
	if err := p.DeleteNode(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := p.DeleteImage(t.Context(), image); err != nil {
		t.Error(err)
	}
	if len(s.servers) != 0 || len(s.images) != 0 {
		t.Errorf("%d servers and %d images are left", len(s.servers), len(s.images))
	}
}

// The answer to the creation of a server is lost after the server was made.
func TestLostAnswerMakesOneServer(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	image := upload(t, p)
	s.fail("POST /compute/v2.1/servers", 1, func(_ http.ResponseWriter, r *http.Request) bool {
		s.createServer(discarded{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	})
	id, err := p.CreateNode(t.Context(), nodeSpec(image))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.servers) != 1 || s.servers[id] == nil {
		t.Errorf("%d servers, want only %s", len(s.servers), id)
	}
}

// discarded is an answer that nobody gets.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// A cloud that is down for longer than a call's tries is borne while a node is
// awaited, but not for ever.
func TestOutage(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	p.pace.total, p.pace.patience = 20*time.Millisecond, 2*time.Second
	id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	over := time.Now().Add(200 * time.Millisecond)
	s.fail("GET /compute", 1000, func(w http.ResponseWriter, r *http.Request) bool {
		return time.Now().Before(over) && answer(500)(w, r)
	})
	if _, err := p.WaitNode(t.Context(), id); err != nil {
		t.Errorf("WaitNode over an outage: %v", err)
	}
	s.calm()
	s.fail("/compute", 100_000, answer(503))
	p.pace.patience = 50 * time.Millisecond
	p.roster.latest = nil // it would do for WaitNode, as fresh as it is
	for name, call := range map[string]func() error{
		"WaitNode":   func() error { _, err := p.WaitNode(t.Context(), id); return err },
		"DeleteNode": func() error { return p.DeleteNode(t.Context(), id) },
		"CreateNode": func() error { _, err := p.CreateNode(t.Context(), nodeSpec(id)); return err },
		"ListNodes":  func() error { _, err := p.ListNodes(t.Context()); return err },
		"Limits":     func() error { _, err := p.Limits(t.Context(), nil); return err },
	} {
		err := call()
		if !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "provider north: ") ||
			!strings.Contains(err.Error(), "req-stub") {
			t.Errorf("%s gave %v, want ErrTransient with provider and request id", name, err)
		}
	}
}

// An upload that breaks leaves nothing, whatever breaks it.
func TestBrokenUpload(t *testing.T) {
	for name, c := range map[string]struct {
		call  string
		times int
		fault func(http.ResponseWriter, *http.Request) bool
		want  error
	}{
		"reset in the middle": {"PUT", 9, func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000) // some of it
			panic(http.ErrAbortHandler)
		}, providers.ErrTransient},
		"refused in the middle": {"PUT", 9, func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = io.CopyN(io.Discard, r.Body, 100_000) // some of it
			return answer(503)(w, r)
		}, providers.ErrTransient},
		"quota":             {"PUT", 9, answerHTML(413, "Denying attempt to upload image because it exceeds the quota: more"), providers.ErrQuota},
		"disk full":         {"PUT", 9, answerHTML(413, "There is not enough disk space on the image storage media"), providers.ErrQuota},
		"bad format":        {"POST /image/v2/images", 9, answerHTML(400, "Invalid disk format"), providers.ErrInvalid},
		"not allowed":       {"POST /image/v2/images", 9, answerHTML(403, "You are not authorized to complete this action."), providers.ErrInvalid},
		"gone afterwards":   {"GET /image/v2/images/", 9, answer(404), providers.ErrNotFound},
		"always logged out": {"PUT", 9, answer(401), providers.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			p := s.open(t, section())
			p.pace.total = 20 * time.Millisecond
			s.fail(c.call, c.times, c.fault)
			id, err := p.UploadImage(t.Context(), describe(t, imageFile(t)))
			if !errors.Is(err, c.want) {
				t.Errorf("UploadImage gave %q, %v, want %v", id, err, c.want)
			}
			if len(s.images) != 0 {
				t.Errorf("%d images are left", len(s.images))
			}
		})
	}
}

// answerHTML is a fault that answers as Glance does.
func answerHTML(status int, words string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html><head><title>x</title></head><body><h1>x</h1>"+words+"<br /></body></html>")
		return true
	}
}

// A call that gets no answer is given up and tried again.
// Who is called off in the middle of a creation hears its answer nevertheless,
// for a while: nobody after it must make a second server.
func TestCalledOffCreation(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	image := upload(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	s.fail("POST /compute/v2.1/servers", 1, func(http.ResponseWriter, *http.Request) bool {
		cancel()
		_ = clock.Sleep(t.Context(), 100*time.Millisecond) // Nova is slow
		return false
	})
	id, err := p.CreateNode(ctx, nodeSpec(image))
	if err != nil || s.servers[id] == nil || len(s.servers) != 1 {
		t.Errorf("CreateNode gave %q, %v; %d servers", id, err, len(s.servers))
	}
	if again, err := p.CreateNode(t.Context(), nodeSpec(image)); again != id || err != nil {
		t.Errorf("the next one made %q, %v, want %s", again, err, id)
	}
	p = s.open(t, section())
	p.pace.hearing = 50 * time.Millisecond
	ctx, cancel = context.WithCancel(t.Context())
	s.fail("POST /compute/v2.1/servers", 1, func(w http.ResponseWriter, r *http.Request) bool {
		cancel()
		return s.silence(w, r)
	})
	other := nodeSpec(image)
	other.NodeID = "0000000008"
	start := time.Now()
	if id, err := p.CreateNode(ctx, other); !errors.Is(err, context.Canceled) || time.Since(start) > time.Second {
		t.Errorf("without an answer CreateNode gave %q, %v after %s", id, err, time.Since(start))
	}
}

func TestSilence(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	p.pace.call = 50 * time.Millisecond
	s.fail("GET /compute/v2.1/servers/detail", 1, s.silence)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Error(err)
	}
	s.fail("GET /compute/v2.1/servers/detail", 1000, s.silence)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.ListNodes(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ListNodes gave %v", err)
	}
}

// A slow upload ends with image-upload-timeout, and leaves nothing.
func TestUploadTimeout(t *testing.T) {
	s := newStub(t)
	cfg := section()
	cfg.ImageUploadTimeout = 200 * time.Millisecond
	p := s.open(t, cfg)
	s.fail("PUT", 1, s.silence)
	_, err := p.UploadImage(t.Context(), describe(t, imageFile(t)))
	if !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "image-upload-timeout") {
		t.Errorf("UploadImage gave %v", err)
	}
	if len(s.images) != 0 {
		t.Errorf("%d images are left", len(s.images))
	}
}
