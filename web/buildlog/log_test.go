package buildlog

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"poolkeeper/test/webtest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// serveLogs is a server of a Dir; requests end with the test.
func serveLogs(t *testing.T) (d *Dir, path string, base string) {
	t.Helper()
	d, pathOf := newDir(t)
	server := httptest.NewServer(routes(newHandler(d)))
	t.Cleanup(server.Close)
	return d, pathOf("image", "0000000001"), server.URL
}

func TestLogAndParts(t *testing.T) {
	d, path := newDir(t)
	appendTo(t, path("image-a", "0000000001"), "0123456789\n")
	h := newHandler(d)
	whole := get(t, h, "/log/image-a-0000000001")
	whole.Expect(t, http.StatusOK)
	if got := whole.Body; got != "0123456789\n" || whole.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %q as %s", got, whole.Header.Get("Content-Type"))
	}
	for ranges, want := range map[string]string{"bytes=2-4": "234", "bytes=-3": "89\n", "bytes=8-": "89\n"} {
		part := get(t, h, "/log/image-a-0000000001", "Range", ranges)
		part.Expect(t, http.StatusPartialContent)
		if got := part.Body; got != want {
			t.Errorf("%s: %q, want %q", ranges, got, want)
		}
	}
	get(t, h, "/log/image-a-0000000001", "Range", "bytes=99-").Expect(t, http.StatusRequestedRangeNotSatisfiable)
	get(t, h, "/log/image-a-0000000001", "If-None-Match", whole.Header.Get("ETag")).Expect(t, http.StatusNotModified)
	appendTo(t, path("image-a", "0000000001"), "more\n")
	get(t, h, "/log/image-a-0000000001", "If-None-Match", whole.Header.Get("ETag")).Expect(t, http.StatusOK)
}

// noLogs fails the test when a name reaches it.
type noLogs struct{ Logs }

func TestLogNamesAreChecked(t *testing.T) {
	h := newHandler(noLogs{}) // opening panics
	for _, path := range []string{
		"/log/image", "/log/-0000000001", "/log/image-", "/log/image-lock",
		"/log/..%2f..%2fetc-passwd", "/log/%2fetc%2fpasswd-1", "/log/image-..%2fx", "/log/..-0000000001",
		"/log/.hidden-0000000001", "/log/image%00-0000000001", "/log/image%0a-0000000001", "/log/image-%20",
		"/log/" + strings.Repeat("x", 201) + "-0000000001", "/log/%ff-0000000001",
		"/log/image-0000000001?follow=perhaps", "/log/image-0000000001?follow=1&offset=x", "/log/image-0000000001?offset=3",
	} {
		if got := get(t, h, path).Status; got != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", path, got)
		}
	}
	for _, path := range []string{"/log/", "/log/a/b-1", "/log"} {
		if got := get(t, h, path).Status; got != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, got)
		}
	}
	// A path that climbs is straightened by a redirect, and leads nowhere.
	if got := get(t, h, "/log/../../etc/passwd-1").Header.Get("Location"); got != "/etc/passwd-1" {
		t.Errorf("a path that climbs leads to %q", got)
	}
}

// What lies where a log would and is none shows nothing: not the file that a link
// leads to, nor a pipe, which would hold the request for ever.
func TestLinksAndPipesAreNoLogs(t *testing.T) {
	d, path := newDir(t)
	secret := filepath.Join(t.TempDir(), "secret")
	appendTo(t, secret, "of this host\n")
	if err := os.Symlink(secret, path("image", "0000000001")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path("image", "0000000002"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"0000000001", "0000000002"} {
		for _, query := range []string{"", "?follow=1"} {
			answer := get(t, newHandler(d), "/log/image-"+id+query)
			if answer.Status < 400 || strings.Contains(answer.Body, "of this host") {
				t.Errorf("%s%s: status %d, %q", id, query, answer.Status, answer.Body)
			}
		}
	}
}

func TestLogOfAnotherHost(t *testing.T) {
	d, _ := newDir(t)
	build := func(id, data string) *zkmodel.BuildTree {
		return &zkmodel.BuildTree{Build: zkmodel.DecodeBuild("image", id, []byte(data), recipe.Stat{})}
	}
	image := &zkmodel.Image{Name: "image", Builds: []*zkmodel.BuildTree{
		build("0000000001", `{"builder": "b2", "log": "http://b2:8005/log/image-0000000001"}`),
		build("0000000002", `{"builder": "b3", "log": "javascript:alert(1)"}`),
		build("0000000004", `{"builder": "b\u001b[2J4"}`),
	}}
	h := newHandler(d, image)
	for id, want := range map[string]string{
		"0000000001": "; see http://b2:8005/log/image-0000000001\n",
		"0000000002": "; it was built on b3\n",
		"0000000003": ", and no record of the build\n",
		"0000000004": "; it was built on b?[2J4\n", // no control characters
	} {
		response := get(t, h, "/log/image-"+id)
		response.Expect(t, http.StatusNotFound)
		if got := response.Body; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want …%q", id, got, want)
		}
	}
}

func TestFollow(t *testing.T) {
	d, path, base := serveLogs(t)
	grew, done := d.Writing("image", "0000000001")
	other := strings.Replace(path, "image-", "other-", 1)
	otherGrew, otherDone := d.Writing("other", "0000000001")
	appendTo(t, other, "OTHER\n")
	appendTo(t, path, "one\n")
	response := webtest.Fetch(t, base+"/log/image-0000000001?follow=1")
	response.Expect(t, http.StatusOK)
	lines := bufio.NewReader(response)
	line := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); got != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	line("one\n")
	beside := bufio.NewReader(webtest.Fetch(t, base+"/log/other-0000000001?follow=1"))
	appendTo(t, other, "MORE\n")
	otherGrew()
	appendTo(t, path, "two\n")
	grew()
	line("two\n")
	late := webtest.Fetch(t, base+"/log/image-0000000001?follow=1&offset=-3")
	rest := webtest.Fetch(t, base+"/log/image-0000000001?follow=1&offset=4")
	appendTo(t, path, "Exit code: 0\n")
	done()
	line("Exit code: 0\n")
	if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("after the build: %v, want the end", err)
	}
	appendTo(t, other, "END\n") // the log of another build, which is longer than this one
	otherDone()
	if got, err := io.ReadAll(beside); err != nil || string(got) != "OTHER\nMORE\nEND\n" {
		t.Errorf("the log of the other build is %q, %v", got, err)
	}
	if got, want := late.Text(t), "wo\nExit code: 0\n"; got != want {
		t.Errorf("from 3 bytes before the end: %q, want %q", got, want)
	}
	if got, want := rest.Text(t), "two\nExit code: 0\n"; got != want {
		t.Errorf("from byte 4: %q, want %q", got, want)
	}
	// A log that is complete is followed to its end, which is now.
	if got, want := webtest.Fetch(t, base+"/log/image-0000000001?follow=true").Text(t), "one\ntwo\nExit code: 0\n"; got != want {
		t.Errorf("complete: %q, want %q", got, want)
	}
}

func TestFollowersThatLeave(t *testing.T) {
	d, path := newDir(t)
	_, done := d.Writing("image", "0000000001")
	defer done()
	appendTo(t, path("image", "0000000001"), "one\n")
	h := newHandler(d)
	h.followers = make(chan struct{}, 1)
	server := httptest.NewServer(routes(h))
	defer server.Close()
	first := webtest.Fetch(t, server.URL+"/log/image-0000000001?follow=1")
	first.Expect(t, http.StatusOK)
	second := webtest.Fetch(t, server.URL+"/log/image-0000000001?follow=1")
	second.Expect(t, http.StatusServiceUnavailable)
	if second.Header.Get("Retry-After") == "" {
		t.Error("nobody says when to come again")
	}
	_ = first.Close()
	zktest.Eventually(t, func() bool { return len(h.followers) == 0 }, "the place of who left")
}
