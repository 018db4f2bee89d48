package trace_test

import (
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"poolkeeper/test/otlptest"
	"poolkeeper/test/zktest"
)

// Mistake: a collector that is restarted, and answers 503 for a moment, loses the batch.
func TestCollectorThatAsksForPatience(t *testing.T) {
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	tracer := open(t, server.URL, func(_ int, err error) { t.Error(err) })
	serve(tracer, request(t, "null"))
	zktest.Eventually(t, func() bool { return tracer.Counts().Sent == spansOf }, "the batch was sent again")
	if err := tracer.Close(t.Context()); err != nil || tries.Load() != 2 {
		t.Errorf("%d tries, %v", tries.Load(), err)
	}
}

// Mistake: variables of OpenTelemetry that every exporter honors are ignored.
func TestVariablesOfTheCollector(t *testing.T) {
	var got atomic.Pointer[http.Request]
	var spans atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store(r)
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		data, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		list, err := otlptest.Decode(data)
		if err != nil {
			t.Error(err)
		}
		spans.Add(int32(len(list)))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"TRACES_ENDPOINT": server.URL + "/own/path", "TRACES_HEADERS": "X-Key=own%20one, x-other=2", "HEADERS": "x-key=all",
		"COMPRESSION": "gzip", "CERTIFICATE": file,
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
	}
	tracer := open(t, "http://127.0.0.1:1", func(_ int, err error) { t.Error(err) })
	serve(tracer, request(t, "null"))
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := got.Load()
	if spans.Load() != spansOf || r.URL.Path != "/own/path" || r.Header.Get("X-Key") != "own one" || r.Header.Get("X-Other") != "2" || r.Header.Get("User-Agent") != "poolkeeper" {
		t.Errorf("%d spans by %s with %v", spans.Load(), r.URL, r.Header)
	}
}
