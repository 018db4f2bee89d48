package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/test/largesite"
)

// What the overview costs the server: of a site of 200 images and 20 providers, and beside 20,000 nodes.
func BenchmarkOverview(b *testing.B) {
	beside := largesite.Overview
	beside.Nodes = 20_000
	for name, size := range map[string]largesite.Size{"200x20": largesite.Large, "25x5_20000_nodes": beside} {
		b.Run(name, func(b *testing.B) {
			large := largesite.New(size, captured)
			cfg, err := large.Load(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			h := newHandler(Options{Tree: large.Tree().Web(), Now: clock(captured), Config: func() *configs.Config { return cfg }}).routes()
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = "127.0.0.1:40000"
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body.String())
				}
				b.ReportMetric(float64(w.Body.Len()), "bytes")
			}
		})
	}
}
