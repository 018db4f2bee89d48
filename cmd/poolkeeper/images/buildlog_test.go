package images

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// A log that is followed is whole, however often the connection breaks.
func TestFollowedLogIsWhole(t *testing.T) {
	const log = "one\ntwo\nthree\nfour\n"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		offset, err := strconv.Atoi(r.FormValue("offset"))
		if err != nil || r.FormValue("follow") != "1" {
			http.Error(w, "want follow and offset", http.StatusBadRequest)
			return
		}
		end := min(offset+6, len(log))
		_, _ = io.WriteString(w, log[offset:end]) // the reader finds out
		if end < len(log) {
			_ = http.NewResponseController(w).Flush() // as above
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	c := BuildLogCmd{Follow: true, ID: "image-0000000001"}
	var out strings.Builder
	if err := c.fetch(t.Context(), &out, &zkmodel.Build{Builder: "b", Log: server.URL}); err != nil || out.String() != log {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if asked != 4 {
		t.Errorf("it was asked for %d times", asked)
	}
}

// What the builder says about a log that it does not have is passed on; one that
// gives nothing is not asked for ever.
func TestLogThatCannotBeRead(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is no log here", http.StatusNotFound)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	c := BuildLogCmd{Follow: true, ID: "image-0000000001"}
	record := &zkmodel.Build{Builder: "b.example.org", Log: server.URL}
	err := c.fetch(t.Context(), io.Discard, record)
	if err == nil || err.Error() != "read log of image-0000000001 from b.example.org: 404 Not Found: there is no log here" {
		t.Errorf("got %v", err)
	}
	answer = func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush() // the reader finds out
		panic(http.ErrAbortHandler)
	}
	if err := c.fetch(t.Context(), io.Discard, record); err == nil {
		t.Error("a log of nothing was read")
	}
}
