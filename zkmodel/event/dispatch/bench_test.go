package dispatch_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// BenchmarkEventToSink measures how long after a change was made its event is with a
// webhook on the same host.
func BenchmarkEventToSink(b *testing.B) {
	came := make(chan time.Time, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- time.Now()
	}))
	defer hook.Close()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(b).Addr()}, Chroot: zktest.Root(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	session, err := client.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	s := dispatch.New(dispatch.Deps{Client: client, Writer: "/poolkeeper/bench", Member: "bench", Logger: hclog.NewNullLogger()})
	s.Set(&dispatch.Options{Keep: 10_000, Age: time.Hour, Sinks: []dispatch.Sink{{Name: "hook", Webhook: hook.URL, Timeout: time.Second}}})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	defer func() {
		stop()
		<-done
	}()
	store := zkmodel.NewStore(session, nil)
	var times []time.Duration
	for b.Loop() {
		if err := store.Tell(b.Context(), event.ProviderUp, "provider/ovh", nil); err != nil {
			b.Fatal(err)
		}
		made := time.Now()
		times = append(times, (<-came).Sub(made))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/p50")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "ms/p99")
}
