package launcher_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"poolkeeper/test/bench"
	"poolkeeper/test/otlptest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/trace"
)

// BenchmarkTraces compares bursts of a launcher that tells a collector where the time of each
// request went with bursts of one that does not, in turns. The collector is a process of its
// own, as it is on another host where traces are kept: what it takes is told apart. It reads,
// and looks at the end only whether it was told all. Then one of each request of a burst is
// looked at: how much of its time from asked to handed over no step has, at most.
func BenchmarkTraces(b *testing.B) {
	for b.Loop() {
		collector := startCollector(b)
		off, on, more := inTurns(b, func(c child, traced bool) child {
			if traced {
				c.Traces = collector.url
			}
			return c
		})
		told := collector.end(b)
		// The last request of a launcher may be handed over without its knowledge, as it ends.
		if want := rounds * (1 + 1000); told.Requests < want || told.Rootless > rounds {
			b.Errorf("traces of %d requests, and %d without their root: %d are missed", told.Requests, told.Rootless, want-told.Requests)
		}
		b.ReportMetric(1000/off.Seconds(), "requests/s-untraced")
		b.ReportMetric(1000/on.Seconds(), "requests/s-traced")
		more.report(b)
		b.ReportMetric(float64(told.Spans)/rounds, "spans/burst")
		b.ReportMetric(told.Read.Seconds()*1000/rounds, "ms-collector/burst")
		gaps := gapsOf(b, 200)
		b.ReportMetric(bench.Percentile(gaps, 0.5).Seconds()*1000, "ms-gap/p50")
		b.ReportMetric(slices.Max(gaps).Seconds()*1000, "ms-gap/max")
		b.ReportMetric(0, "ns/op")
	}
}

// gapsOf are the longest gaps in the traces of requests that come all at once.
func gapsOf(b *testing.B, count int) []time.Duration {
	b.Helper()
	collector := otlptest.Start(b)
	s := scene{b: b, server: zktest.Start(b)}
	s.dial()
	_, stop := child{Server: s.server.Addr(), Instances: count + 10, Boot: 100 * time.Millisecond, Traces: collector.URL}.start(b)
	s.mixedBurst(count)
	roots := func() []otlptest.Span {
		return slices.DeleteFunc(collector.Spans(), func(span otlptest.Span) bool { return span.Name != "request" })
	}
	zktest.Eventually(b, func() bool { return len(roots()) >= count }, "%d traces", count)
	stop() // the last spans are sent
	var gaps []time.Duration
	for _, span := range roots() {
		found, _ := collector.Trace("request", "request", span.Attributes["request"])
		if wrong := found.Untidy(); wrong != "" {
			b.Errorf("%s:\n%s", wrong, found)
		}
		gap, behind := found.Gap()
		if gap > 50*time.Millisecond {
			b.Logf("%v behind %s:\n%s", gap, behind, found)
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// tracer sends to the child's collector; nil where it has none.
func (c child) tracer(ctx context.Context) *trace.Tracer {
	if c.Traces == "" {
		return nil
	}
	t, err := trace.Open(ctx, trace.About{Service: "poolkeeper-launcher", Host: "bench"}, func(s string) string { return s }, func(_ int, err error) { panic(err) })
	if err != nil {
		panic(err)
	}
	return t
}
