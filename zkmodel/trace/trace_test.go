package trace_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/redact"
	"poolkeeper/test/otlptest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

func plain(s string) string { return s }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// Tracing is on where the environment names a collector, and only there. Mistake: a daemon
// that sends spans to localhost since another variable of OpenTelemetry is set; headers that the
// library cannot read, which it prints with their secrets.
func TestWanted(t *testing.T) {
	const end, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	const headers = "OTEL_EXPORTER_OTLP_HEADERS"
	for _, tc := range []struct {
		env   []string
		want  bool
		wrong string
	}{
		{nil, false, ""},
		{[]string{"OTEL_SERVICE_NAME", "x"}, false, ""},
		{[]string{end, "http://c:4318"}, true, ""},
		{[]string{traces, "https://c/v1/traces"}, true, ""},
		{[]string{end, "http://c:4318", "OTEL_SDK_DISABLED", "true"}, false, ""},
		{[]string{end, "http://c:4318", "OTEL_SDK_DISABLED", "TRUE"}, false, ""},
		{[]string{end, "http://c:4318", headers, "authorization=Bearer opensesame, x-key=a%20b=="}, true, ""},
		{[]string{end, "http://c:4318", headers, "opensesame"}, false, headers},
		{[]string{end, "http://c:4318", headers, "a=b,opensesame"}, false, headers},
		{[]string{end, "http://c:4318", headers, "a=100%opensesame"}, false, headers},
		{[]string{end, "http://c:4318", headers, "Bearer opensesame=x"}, false, headers},
		{[]string{end, "http://c:4318", "OTEL_TRACES_EXPORTER", "none"}, false, ""},
		{[]string{end, "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}, true, ""},
		{[]string{end, "c:4318"}, false, end},
		{[]string{traces, "unix:///x"}, false, traces},
		{[]string{end, "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, false, "grpc"},
	} {
		got, err := trace.Wanted(env(tc.env...))
		if got != tc.want || (err != nil) != (tc.wrong != "") || err != nil && (!strings.Contains(err.Error(), tc.wrong) || strings.Contains(err.Error(), "opensesame")) {
			t.Errorf("%q: %v, %v", tc.env, got, err)
		}
	}
}

// request is one as Zuul has written it, with span_info.
func request(tb testing.TB, info string) *zkmodel.Request {
	tb.Helper()
	text := `{"state": "requested", "state_time": 1700000000.5, "created_time": 1700000000.5, "node_types": ["small"], "event_id": "e1", "requestor_data": {"job_name": "x", "span_info": ` + info + `}}`
	r := zkmodel.DecodeRequest("200-0000000007", []byte(text), recipe.Stat{Czxid: 7, Ctime: time.Now().Add(-time.Second)})
	if r.Broken != nil {
		tb.Fatal(r.Broken)
	}
	return r
}

// serve tells of one request that is handed over.
func serve(tracer *trace.Tracer, r *zkmodel.Request) {
	span := tracer.Request(r, "serve", 0).Set("provider", "cloud")
	span.Next("accept")
	node := span.Next("launch").Begin("node").Set("node", "0000000001")
	node.Next("attempt").SetInt("attempt", 1)
	node.End(nil)
	span.Over("fulfilled", "")
	span.Next("release").Set("never", "told")
	span.Tell(nil)
}

// open makes a Tracer to a collector.
func open(t *testing.T, url string, failed func(int, error)) *trace.Tracer {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	tracer, err := trace.Open(t.Context(), trace.About{Service: "poolkeeper-launcher", Version: "1", Host: "nl01"}, plain, failed)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// The span in which Zuul asked is the parent, as its library's numbers or as digits, and
// what it does not record is not recorded here; what cannot be read is as if it were not there.
func TestZuulsSpan(t *testing.T) {
	for name, tc := range map[string]struct{ info, trace, parent string }{
		"numbers": {`{"name": "x", "trace_id": 338953138925153547590470800371487866880, "span_id": 16, "trace_flags": 1}`, "ff000000000000000000000000000000", "0000000000000010"},
		"digits":  {`{"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331", "trace_flags": 1}`, "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"},
		"none":    {`null`, "", ""},
		"half":    {`{"trace_id": 5, "trace_flags": 1}`, "", ""},
		"zero":    {`{"trace_id": 0, "span_id": 0, "trace_flags": 1}`, "", ""},
		"large":   {`{"trace_id": 5, "span_id": 18446744073709551616, "trace_flags": 1}`, "", ""},
		"text":    {`{"trace_id": "5", "span_id": "x", "trace_flags": 1}`, "", ""},
		"odd":     {`[1]`, "", ""},
		"flags":   {`{"trace_id": 5, "span_id": 5, "trace_flags": 0}`, "silent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			collector := otlptest.Start(t)
			tracer := open(t, collector.URL, func(_ int, err error) { t.Error(err) })
			r := request(t, tc.info)
			id := tracer.Request(r, "serve", 0).Trace()
			serve(tracer, r)
			if err := tracer.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			found, ok := collector.Trace("request", "event", "e1")
			if ok == (tc.trace == "silent") {
				t.Fatalf("told: %v", ok)
			}
			if !ok {
				return
			}
			if tc.trace != "" && (found.Root.Trace != tc.trace || found.Root.Parent != tc.parent) || tc.trace == "" && found.Root.Parent != "" || found.Root.Trace != id {
				t.Errorf("%s", found)
			}
			if wrong := found.Untidy(); wrong != "" || len(found.Spans) != 7 || len(found.Named("release")) != 0 {
				t.Errorf("%s:\n%s", wrong, found)
			}
			if gap, behind := found.Gap(); gap > time.Millisecond { // the stages are told by construction
				t.Errorf("%v behind %s:\n%s", gap, behind, found)
			}
			if about := found.Root.Resource; about["service.name"] != "poolkeeper-launcher" || about["host.name"] != "nl01" || about["service.version"] != "1" {
				t.Errorf("resource %v", about)
			}
		})
	}
}

// Two launchers that know of a request only what the tree says are in one trace, with one
// root; another request, or the one of that number after a restore, is in another.
func TestIdentity(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	one, two := open(t, collector.URL, nil), open(t, collector.URL, nil)
	r, other, later := request(t, "null"), request(t, "null"), request(t, "null")
	other.Stat.Czxid, later.Stat.Ctime = 8, r.Stat.Ctime.Add(time.Hour)
	a, b := one.Request(r, "serve", 0), two.TakenOver(r, "serve", 0)
	a.Tell(errors.New("it stops"))
	b.Over("fulfilled", "")
	b.Tell(nil)
	if a.Trace() != b.Trace() || a.Trace() == one.Request(other, "x", 0).Trace() || a.Trace() == one.Request(later, "x", 0).Trace() {
		t.Error("identities are wrong")
	}
	for _, tracer := range []*trace.Tracer{one, two} {
		if err := tracer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := collector.Trace("request", "event", "e1")
	if wrong := found.Untidy(); wrong != "" || len(found.Named("serve")) != 2 || len(found.Named("request")) != 1 || found.Root.Resource["service.name"] != "mine" {
		t.Errorf("%s:\n%s", wrong, found)
	}
}

// Where nothing is told nothing is done. Mistake: spans that are made and thrown away, on the
// way of each request.
func TestOff(t *testing.T) {
	var tracer *trace.Tracer
	r := request(t, "null")
	before := runtime.NumGoroutine()
	if n := testing.AllocsPerRun(100, func() { serve(tracer, r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := tracer.Close(t.Context()); err != nil || tracer.On() || runtime.NumGoroutine() > before {
		t.Error("something runs", err)
	}
}

// A collector that does not answer costs spans, not time or memory, and is told of once.
func TestCollectorIsGone(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "50")
	told := make(chan error, 100)
	tracer := open(t, "http://"+silent.Addr().String(), func(_ int, err error) { told <- err })
	r := request(t, "null")
	for range 1_500 { // 10,500 spans: more than wait
		serve(tracer, r)
	}
	zktest.Eventually(t, func() bool { return len(told) > 0 }, "the failure told")
	began := time.Now()
	err = tracer.Close(context.WithoutCancel(t.Context()))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("closed after %v, %v", took, err)
	}
	if len(told) != 1 {
		t.Errorf("told %d times", len(told))
	}
}

// What the environment says in confidence is in no text, and a Tracer is made where it names a
// collector only.
func TestFromEnvironment(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=opensesame%21, other=anothersecret")
	var secrets redact.Secrets
	about := trace.About{Service: "poolkeeper-launcher"}
	tracer, err := trace.FromEnvironment(t.Context(), env(), about, &secrets, hclog.NewNullLogger())
	if err != nil || tracer != nil {
		t.Fatal(tracer, err)
	}
	if tracer, err = trace.FromEnvironment(t.Context(), os.Getenv, about, &secrets, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	span := tracer.Request(request(t, "null"), "serve", 0)
	span.Set("provider", "of opensesame!")
	span.Over("failed", "the cloud said: opensesame! is wrong")
	span.Tell(nil)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _ := collector.Trace("request", "event", "e1")
	if found.Root.Error != "the cloud said: ******** is wrong" || collector.Header("X-Key") != "opensesame!" {
		t.Errorf("%q, %q", found.Root.Error, collector.Header("X-Key"))
	}
	if serves := found.Named("serve"); len(serves) != 1 || serves[0].Attributes["provider"] != "of ********" {
		t.Errorf("%+v", serves)
	}
	for _, said := range []string{"opensesame%21", "anothersecret"} {
		if !secrets.Has(said) {
			t.Errorf("%s is shown", said)
		}
	}
}
