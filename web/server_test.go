package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/webtest"
	"poolkeeper/test/zktest"
	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// start runs a server; stop ends it and returns what Run returned.
func startServer(t *testing.T, o Options) (s *Server, stop func() error) {
	t.Helper()
	o.Addr = "127.0.0.1:0"
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error {
		cancel()
		return <-done
	}
	t.Cleanup(cancel)
	return s, stop
}

func TestRun(t *testing.T) {
	s, stop := startServer(t, Options{Daemon: "builder", Host: "b1", Version: "1.2"})
	page := webtest.Fetch(t, "http://"+s.Addr()+"/").Text(t)
	if !strings.Contains(page, "<title>Poolkeeper builder on b1</title>") || !strings.Contains(page, "1.2") {
		t.Errorf("the page does not say whose it is:\n%s", page)
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v, want none", err)
	}
	if again, err := New(t.Context(), Options{Addr: s.Addr()}); err != nil {
		t.Errorf("the address is not free after the end: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// Mistake: a request with two lengths keeps its connection, and what a proxy took for its end is another request.
func TestTwoLengthsEndTheConnection(t *testing.T) {
	s, _ := startServer(t, Options{})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const inner = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	fmt.Fprintf(conn, "POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", 5+len(inner), inner)
	all, err := io.ReadAll(conn)
	if answers := strings.Count(string(all), "HTTP/1.1 "); err != nil || answers != 1 || !strings.Contains(string(all), "\r\nConnection: close\r\n") {
		t.Errorf("%d answers, %v:\n%s", answers, err, all)
	}
}

func TestAddressInUse(t *testing.T) {
	s, stop := startServer(t, Options{})
	if _, err := New(t.Context(), Options{Addr: s.Addr()}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("an address in use: %v, want EADDRINUSE and the address", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServeFails(t *testing.T) {
	s, err := New(t.Context(), Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("a server without a listener ran to a good end")
	}
}

func TestLogURL(t *testing.T) {
	s, stop := startServer(t, Options{})
	_, port, _ := strings.Cut(s.Addr(), ":")
	if got, want := s.LogURL("b1.example.org", "image", "0000000001"), "http://b1.example.org:"+port+"/log/image-0000000001"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.LogURL("::1", "odd?#%", "0000000001"); !buildlog.IsURL(got) || !strings.HasPrefix(got, "http://[::1]:") || !strings.HasSuffix(got, "/log/odd%3F%23%25-0000000001") {
		t.Errorf("odd names make %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A log that is followed ends with the server: at once, and not as if the
// build had ended.
func TestStopBreaksOffLogs(t *testing.T) {
	d := newLogs(t, "one\n")
	_, done := d.Writing("image", "0000000001")
	defer done()
	s, stop := startServer(t, Options{Logs: d})
	response := webtest.Fetch(t, s.LogURL("127.0.0.1", "image", "0000000001")+"?follow=1")
	response.Expect(t, http.StatusOK)
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= stopPatience {
		t.Errorf("the end took %s", took)
	}
	if got, err := io.ReadAll(response); string(got) != "one\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v; want the first line and ErrUnexpectedEOF", got, err)
	}
}

// A build may be silent for longer than a client may be slow, and its log ends
// well all the same.
func TestFollowASilentBuild(t *testing.T) {
	d := newLogs(t, "one\n")
	_, done := d.Writing("image", "0000000001")
	h := newHandler(Options{Logs: d})
	h.patience = 20 * time.Millisecond
	server := httptest.NewUnstartedServer(h.routes())
	server.Config.WriteTimeout = h.patience
	server.Start()
	defer server.Close()
	response := webtest.Fetch(t, server.URL+"/log/image-0000000001?follow=1")
	silence := time.AfterFunc(5*h.patience, done)
	defer silence.Stop()
	if got := response.Text(t); got != "one\n" {
		t.Errorf("got %q", got)
	}
}

// The Mirror of a real tree fits.
func TestMirror(t *testing.T) {
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	m := zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartComponents, nil)
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("follow the tree: %v", err)
		}
	}()
	defer func() { cancel(); <-followed }()
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	if err := store.RequestBuild(t.Context(), "image-a"); err != nil {
		t.Fatal(err)
	}
	o := Options{Tree: Tree{Images: m.Images, Components: m.Components, WaitSynced: m.WaitSynced}}
	zktest.Eventually(t, func() bool {
		return strings.Contains(get(t, o, "/image-status").Body, "| image-a | False  | pending       |")
	}, "the image in the listing")
	page := get(t, o, "/").Body + get(t, o, "/images").Body
	for _, want := range []string{"build requested", "No builder is running", "Image image-a has no ready build"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}
