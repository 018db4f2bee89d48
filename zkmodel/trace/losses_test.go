package trace_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"poolkeeper/configs/redact"
	"poolkeeper/test/otlptest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/trace"
)

// heard is what a Tracer said of lost spans.
type heard struct {
	mu   sync.Mutex
	lost []int
	why  []error
}

func (h *heard) told(lost int, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost, h.why = append(h.lost, lost), append(h.why, why)
}

func (h *heard) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.why)
}

// spansOf is how many spans serve tells.
const spansOf = 7

// A collector that does not take spans costs them, and they are counted, with a reason that
// names what is wrong. Mistakes: a redirection that is followed, as a page is then asked for
// whose 200 is taken for success, and another host is told the headers; what a collector takes
// only partly.
func TestLost(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("X-Key"))
	}))
	t.Cleanup(elsewhere.Close)
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/login", status) }
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		lost   int
		why    string
	}{
		"found":     {redirect(http.StatusFound), spansOf, "302 Found, to " + elsewhere.URL + "/login"},
		"permanent": {redirect(http.StatusPermanentRedirect), spansOf, "308 Permanent Redirect"},
		"refused":   {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such tenant", http.StatusForbidden) }, spansOf, "no such tenant"},
		"partly": {func(w http.ResponseWriter, _ *http.Request) {
			answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 3, ErrorMessage: "too\nold"}})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(answer)
		}, 3, "too\nold"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			t.Cleanup(server.Close)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=opensesame")
			var h heard
			tracer := open(t, server.URL, h.told)
			serve(tracer, request(t, "null"))
			err := tracer.Close(t.Context())
			counts := tracer.Counts()
			if err == nil || !strings.Contains(err.Error(), tc.why) || counts.Refused != uint64(tc.lost) || counts.Sent != uint64(spansOf-tc.lost) {
				t.Errorf("%v; %+v", err, counts)
			}
			if h.times() != 1 || h.lost[0] != tc.lost || !strings.Contains(h.why[0].Error(), tc.why) {
				t.Errorf("told %d, %q", h.lost, h.why)
			}
		})
	}
}

// A collector that takes spans more slowly than they come costs those for which there is no
// room, which is told once and counted, and told again when it is over.
func TestSlowCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "70")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	taking, took := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		taking <- struct{}{}
		<-took
	}))
	t.Cleanup(server.Close)
	var h heard
	tracer := open(t, server.URL, h.told)
	r := request(t, "null")
	serve(tracer, r)
	<-taking
	for range 15 { // for 10 of them there is room
		serve(tracer, r)
	}
	if counts := tracer.Counts(); counts.Dropped != 5*spansOf || h.times() != 1 || !strings.Contains(h.why[0].Error(), "OTEL_BSP_MAX_QUEUE_SIZE") {
		t.Errorf("%+v; told %d, %q", counts, h.lost, h.why)
	}
	close(took)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if counts := tracer.Counts(); counts.Sent != 11*spansOf || h.times() != 2 || h.lost[1] != 4*spansOf || h.why[1] != nil {
		t.Errorf("%+v; told %d, %q", counts, h.lost, h.why)
	}
}

// What a daemon has in hand when it stops, and a collector that is gone does not take, is
// counted and said, within the time that a stop has.
func TestLastAreLost(t *testing.T) {
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stuck) })
	var h heard
	tracer := open(t, server.URL, h.told)
	serve(tracer, request(t, "null"))
	began := time.Now()
	err := tracer.Close(context.WithoutCancel(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "7 spans are lost") || tracer.Counts().Refused != spansOf || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v; %+v", err, time.Since(began), tracer.Counts())
	}
	serve(tracer, request(t, "null")) // and what comes behind it
	if tracer.Counts().Dropped != spansOf {
		t.Errorf("%+v", tracer.Counts())
	}
}

// Texts of clouds may have bytes that the protocol does not take: one such text would cost all
// that is sent with it.
func TestOddTexts(t *testing.T) {
	server := otlptest.Start(t)
	tracer := open(t, server.URL, func(_ int, err error) { t.Error(err) })
	span := tracer.Request(request(t, "null"), "serve", 0).Set("provider", "\xff!").Set("provider", "\xfe?")
	span.Over("failed", "the cloud said \xff")
	span.Tell(nil)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _ := server.Trace("request", "event", "e1")
	if found.Root.Error != "the cloud said �" || found.Named("serve")[0].Attributes["provider"] != "�?" {
		t.Errorf("%s", found)
	}
}

// A file of the environment that cannot be used is named at the start: the library would go on
// without it, and each call fail with a text that names another cause.
func TestFilesOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "missing.pem")
	if err := os.WriteFile(empty, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	good, key := zktest.NewCA(t).Issue("client")
	for name, tc := range map[string]struct {
		env  map[string]string
		want []string
	}{
		"good":    {map[string]string{"CERTIFICATE": good, "CLIENT_CERTIFICATE": good, "CLIENT_KEY": key}, nil},
		"empty":   {map[string]string{"CERTIFICATE": empty}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE: " + empty + " has no certificate"}},
		"missing": {map[string]string{"TRACES_CERTIFICATE": missing}, []string{missing}},
		"key":     {map[string]string{"CLIENT_CERTIFICATE": good, "CLIENT_KEY": empty}, []string{"CLIENT_KEY"}},
		"half":    {map[string]string{"CLIENT_CERTIFICATE": good}, []string{"CLIENT_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1")
			for key, value := range tc.env {
				t.Setenv("OTEL_EXPORTER_OTLP_"+key, value)
			}
			var out strings.Builder
			log := hclog.New(&hclog.LoggerOptions{Output: &out})
			tracer, err := trace.FromEnvironment(t.Context(), os.Getenv, trace.About{}, &redact.Secrets{}, log)
			if err != nil {
				t.Fatal(err)
			}
			_ = tracer.Close(t.Context())
			if strings.Count(out.String(), "[WARN]") != len(tc.want) {
				t.Errorf("logged: %s", out.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %s: %s", want, out.String())
				}
			}
		})
	}
}
