package web

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/largesite"
	"poolkeeper/zkmodel"
)

// sites are those whose pages are measured.
func sites() map[string]largesite.Size {
	beside := largesite.Overview
	beside.Nodes = 20_000
	return map[string]largesite.Size{"25x5": largesite.Overview, "200x20": largesite.Large, "25x5_20000_nodes": beside}
}

// serveSite is a server of a large site.
func serveSite(b *testing.B, size largesite.Size) http.Handler {
	b.Helper()
	large := largesite.New(size, captured)
	cfg, err := large.Load(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	tree := large.Tree().Web()
	tree.Watch = func(ctx context.Context, _ func(zkmodel.Part)) { <-ctx.Done() } // nothing changes
	return newHandler(Options{Tree: tree, Now: clock(captured), Config: func() *configs.Config { return cfg }}).routes()
}

// processor is how long this process has had a processor.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// What the overview costs the server: of a site of 200 images and 20 providers, and beside 20,000 nodes. Beside the
// time it gives that of the processor, which other work on the machine does not lengthen.
func BenchmarkOverview(b *testing.B) {
	for name, size := range sites() {
		b.Run(name, func(b *testing.B) {
			h := serveSite(b, size)
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", http.NoBody)
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:40000"
			before, length := processor(b), 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body.String())
				}
				length = w.Body.Len()
			}
			b.ReportMetric(float64(length), "bytes")
			b.ReportMetric(float64((processor(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// What 100 open overviews cost while nothing changes, in percent of a core: the streams that they wait by, and what
// their script loads, which is the page every 5 minutes. The clients' part is counted, too.
func BenchmarkOpenPages(b *testing.B) {
	const pages, every, rest = 100, 5 * time.Minute, 30 * time.Second
	for name, size := range sites() {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(serveSite(b, size))
			defer server.Close()
			get := func(path string) *http.Response {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if response.StatusCode != http.StatusOK {
					b.Fatalf("%s: %s", path, response.Status)
				}
				return response
			}
			for range pages {
				stream := get("/live")
				defer func() { _ = stream.Body.Close() }()
				if _, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				before := processor(b)
				<-time.After(rest)
				waited := processor(b) - before
				before = processor(b)
				for range pages {
					page := get("/")
					if _, err := io.Copy(io.Discard, page.Body); err != nil {
						b.Fatal(err)
					}
					_ = page.Body.Close()
				}
				loaded := processor(b) - before
				b.ReportMetric(100*(waited.Seconds()/rest.Seconds()+loaded.Seconds()/every.Seconds()), "%core")
			}
		})
	}
}
