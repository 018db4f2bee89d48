// Package webtest asks pages for tests, as they are written and over the network.
package webtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Serve has a handler answer one request.
func Serve(h http.Handler, r *http.Request) Answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return Answer{w.Code, w.Header(), w.Body.String()}
}

// Get is a GET, of this host; headers are pairs.
func Get(t *testing.T, h http.Handler, target string, headers ...string) Answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	r.Host = "localhost"
	r.RemoteAddr = "127.0.0.1:40000"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return Serve(h, r)
}

// Expect checks an answer's status.
func (a Answer) Expect(t *testing.T, status int) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
}

// Stream is an answer over the network, to be read as it comes.
type Stream struct {
	Answer
	io.ReadCloser
}

// Fetch gets a page over the network; it is closed when the test ends.
func Fetch(t *testing.T, url string) Stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return Stream{Answer{Status: response.StatusCode, Header: response.Header}, response.Body}
}

// Text reads a stream to its end.
func (s Stream) Text(t *testing.T) string {
	t.Helper()
	data, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
