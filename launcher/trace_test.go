package launcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/otlptest"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/trace"
)

// tracer sends to the collector of the environment.
func (c child) tracer() *trace.Tracer {
	if !c.Traced {
		return nil
	}
	t, err := trace.Open(context.Background(), trace.About{Service: "poolkeeper-launcher", Host: c.Name}, func(s string) string { return s }, func(int, error) {})
	if err != nil {
		panic(err)
	}
	return t
}

// traced gives a launcher of the test a Tracer, whose spans are sent at its end.
func traced(t *testing.T, host string) func(*launcher.Deps) {
	t.Helper()
	tracer, err := trace.Open(t.Context(), trace.About{Service: "poolkeeper-launcher", Version: "1.0", Host: host},
		strings.NewReplacer("sesame", "***").Replace, func(_ int, err error) { t.Errorf("traces: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.WithoutCancel(t.Context())) })
	return func(d *launcher.Deps) { d.Tracer = tracer }
}

// traceOf waits for the trace of a request.
func traceOf(t *testing.T, c *otlptest.Collector, id string) otlptest.Trace {
	t.Helper()
	var found otlptest.Trace
	zktest.Eventually(t, func() (ok bool) {
		found, ok = c.Trace("request", "request", id)
		return ok && found.Untidy() == ""
	}, "a trace of %s that is one tree", id)
	// Each piece of the time has a name: stages begin where those before end. What is left are
	// steps between goroutines.
	if gap, behind := found.Gap(); gap > 5*time.Second {
		t.Errorf("nothing is known of %v behind %s:\n%s", gap, behind, found)
	}
	t.Logf("\n%s", found)
	if found.Root.To.Before(found.Root.From) || found.Root.Attributes["event"] == "" {
		t.Errorf("root: %+v", found.Root)
	}
	return found
}

// hook makes trouble in all clouds.
func (s *site) hook(do func(context.Context, fake.Call) error) {
	for _, cloud := range s.clouds {
		cloud.SetHook(do)
	}
}

// A trace tells where the time of a request went, by whatever launcher: in the second try, after its
// launcher was killed, put back by one and served by another, as a part of Zuul's own, given up, or not served at all.
// Mistakes: a span whose parent nobody tells of; another trace for each launcher; Zuul's
// trace ended at Zuul; time between two tries of which nothing is said.
func TestTraces(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	both := "{name: mini, diskimage: debian, min-ram: 1024}"
	s, c := newCrashSite(t, strings.Replace(beside(onePool), both, both+", {name: large, diskimage: debian, min-ram: 1024}", 1))
	s.image()
	c.Name, c.At, c.Traced = "dying.example.org", step.Created, true
	dying := c.spawn(t)
	w := wish("small", "large") // the other provider has no small one
	killed := s.submit(w)
	c.died(t)
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(named(host), traced(t, host))
	}
	<-dying.ended
	s.mustBeServed(killed)

	var failed atomic.Bool
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done && failed.CompareAndSwap(false, true) {
			return fmt.Errorf("%w: sesame does not open", providers.ErrTransient)
		}
		return nil
	})
	w = wish("small")
	again := s.submit(w)
	s.mustBeServed(again)
	// As Zuul writes it: numbers of 128 and 64 bits.
	w = wish("large")
	w.SpanInfo = map[string]any{"trace_id": json.Number("170141183460469231731687303715884105727"), "span_id": 258, "trace_flags": 1}
	continued := s.submit(w)
	s.mustBeServed(continued)
	refused := make(chan struct{}, 1)
	refused <- struct{}{}
	s.hook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done {
			select {
			case <-refused:
				return fmt.Errorf("%w: no host", providers.ErrQuota)
			default:
			}
		}
		return nil
	})
	back := s.submit(wish("large"))
	s.mustBeServed(back)
	booting, boot := make(chan struct{}, 1), make(chan struct{})
	s.hook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done {
			booting <- struct{}{}
			select {
			case <-boot:
			case <-ctx.Done():
			}
		}
		return nil
	})
	left := s.submit(wish("small"))
	zktest.Await(t, booting, "a machine boots")
	if err := s.store.DeleteRequest(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	close(boot)
	s.hook(nil)
	unknown := s.submit(wish("moon"))
	s.wait(unknown)

	t.Run("killed", func(t *testing.T) {
		found := traceOf(t, collector, killed)
		before, nodes := found.Named("launcher before"), found.Named("node")
		if len(before) != 1 || len(nodes) != 2 || len(found.Named("take over")) != 1 || found.Root.Attributes["state"] != "fulfilled" {
			t.Errorf("\n%s", found)
		}
		for _, host := range []string{before[0].Resource["host.name"], found.Root.Resource["host.name"]} {
			if host != "nl01" && host != "nl02" {
				t.Errorf("told by %q", host)
			}
		}
	})
	t.Run("again", func(t *testing.T) {
		found := traceOf(t, collector, again)
		attempts := found.Named("attempt")
		if len(attempts) != 2 || attempts[0].Error == "" || attempts[0].Attributes["attempt"] != "1" || attempts[1].Error != "" || attempts[1].Attributes["image"] == "" {
			t.Fatalf("\n%s", found)
		}
		if !strings.Contains(attempts[0].Error, "*** does not open") {
			t.Errorf("not masked: %s", attempts[0].Error)
		}
		for _, name := range []string{"wait", "serve", "accept", "begin", "launch", "node", "create", "boot", "host keys", "record", "conclude", "settle"} {
			if len(found.Named(name)) == 0 {
				t.Errorf("no %s:\n%s", name, found)
			}
		}
		serve := found.Named("serve")[0]
		if serve.Attributes["provider"] != "cloud" || serve.Attributes["pool"] != "main" || serve.Attributes["request"] != again ||
			serve.Resource["service.name"] != "poolkeeper-launcher" || serve.Resource["service.version"] != "1.0" || found.Root.Parent != "" {
			t.Errorf("%+v", serve)
		}
		if serve.To != found.Root.To {
			t.Errorf("served until %v, handed over at %v", serve.To, found.Root.To)
		}
	})
	t.Run("continued", func(t *testing.T) {
		found := traceOf(t, collector, continued)
		if found.Root.Trace != "7fffffffffffffffffffffffffffffff" || found.Root.Parent != "0000000000000102" {
			t.Errorf("trace %s, parent %s", found.Root.Trace, found.Root.Parent)
		}
	})
	t.Run("put back", func(t *testing.T) {
		found := traceOf(t, collector, back)
		serves := found.Named("serve")
		if len(serves) != 2 || serves[0].Error == "" || serves[1].Error != "" || len(found.Named("wait")) != 2 ||
			serves[0].Attributes["provider"] == serves[1].Attributes["provider"] {
			t.Errorf("\n%s", found)
		}
	})
	t.Run("left", func(t *testing.T) {
		if found := traceOf(t, collector, left); found.Root.Error != "its requestor has left" || found.Root.Attributes["state"] != "cancelled" {
			t.Errorf("\n%s", found)
		}
	})
	t.Run("failed", func(t *testing.T) {
		found := traceOf(t, collector, unknown)
		if found.Root.Attributes["state"] != "failed" || found.Root.Error != "no pool has the label moon" || len(found.Named("decline")) == 0 {
			t.Errorf("\n%s", found)
		}
	})
}

// A request that was put back and is deleted while it waits has a root: who has put it back
// tells it. Mistakes: spans whose parent nobody tells of; two who tell it.
func TestTraceOfDeleted(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := newSite(t, onePool)
	s.hook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done {
			return fmt.Errorf("%w: no host", providers.ErrQuota)
		}
		return nil
	})
	s.image()
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(named(host), traced(t, host))
	}
	id := s.submit(wish("small"))
	zktest.Eventually(t, func() bool {
		r, err := s.store.Request(t.Context(), id)
		return err == nil && r.State == zkmodel.RequestRequested && r.Reason != ""
	}, "%s is put back", id)
	if err := s.store.DeleteRequest(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	found := traceOf(t, collector, id)
	if found.Root.Attributes["state"] != "cancelled" || found.Root.Error != "its requestor has left" || len(found.Named("request")) != 1 || len(found.Named("serve")) == 0 {
		t.Errorf("\n%s", found)
	}
	// It was deleted while it waited, or in the middle of the next try.
	waits, serves := found.Named("wait"), found.Named("serve")
	last := waits[len(waits)-1]
	if last.To != found.Root.To && serves[len(serves)-1].To != found.Root.To || !last.From.After(serves[0].From) {
		t.Errorf("the last wait:\n%s", found)
	}
}

// A request that is deleted while its cloud refuses the machine was cancelled, and its trace has an end.
func TestTraceOfDeletedWhileRefused(t *testing.T) {
	collector := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := newSite(t, onePool)
	asked := make(chan string, 1)
	s.hook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done {
			return errors.Join(s.store.DeleteRequest(ctx, <-asked), fmt.Errorf("%w: no host", providers.ErrQuota))
		}
		return nil
	})
	s.image()
	s.launch(traced(t, "nl01"))
	id := s.submit(wish("small"))
	asked <- id
	found := traceOf(t, collector, id)
	if found.Root.Attributes["state"] != "cancelled" || found.Root.Error != "its requestor has left" || len(found.Named("request")) != 1 {
		t.Errorf("\n%s", found)
	}
}
