package live_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"poolkeeper/test/zktest"
	"poolkeeper/web/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is a page that is told of changes.
type page struct {
	status int
	header http.Header
	lines  *bufio.Scanner
	shut   func() error
}

// open opens one.
func open(t *testing.T, url string) *page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &page{response.StatusCode, response.Header, bufio.NewScanner(response.Body), response.Body.Close}
}

// Two pages are told of a change; the watch lives as long as there is a page; one too many is refused. Mistakes: a
// page that takes what another is told; a watch that outlives all pages, or ends with the first; streams without end.
func TestPagesAreTold(t *testing.T) {
	changes := make(chan string)
	ended := make(chan struct{}, 2)
	hub := live.New(func(ctx context.Context, changed func(string)) {
		defer func() { ended <- struct{}{} }()
		for {
			select {
			case part := <-changes:
				changed(part)
			case <-ctx.Done():
				return
			}
		}
	})
	server := httptest.NewServer(hub)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Cleanup(server.Close)
	first, second := open(t, server.URL), open(t, server.URL)
	changes <- "nodes"
	changes <- "images"
	for name, lines := range map[string]*bufio.Scanner{"first": first.lines, "second": second.lines} {
		told := map[string]bool{}
		for !told["nodes"] || !told["images"] {
			if !lines.Scan() {
				t.Fatalf("the %s page: %v", name, lines.Err())
			}
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				for part := range strings.FieldsSeq(data) {
					told[part] = true
				}
			}
		}
	}
	_ = first.shut()
	changes <- "requests" // there is somebody to tell
	streams := []*page{second}
	for n := 1; ; n++ {
		response := open(t, server.URL)
		streams = append(streams, response)
		if response.status == http.StatusServiceUnavailable {
			if response.header.Get("Retry-After") == "" || n < live.MaxStreams-1 {
				t.Errorf("stream %d: no word of when to come again, or refused too early", n)
			}
			break
		}
		if n > live.MaxStreams {
			t.Fatalf("%d streams and no end", n)
		}
	}
	for _, response := range streams {
		_ = response.shut()
	}
	zktest.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}, "the watch ends with the last page")
}
