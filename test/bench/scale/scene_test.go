package scale_test

import (
	"slices"
	"testing"
	"time"

	"poolkeeper/test/bench"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// scene is a ZooKeeper of its own, which nobody else asks.
type scene struct {
	b       *testing.B
	server  *zktest.Server
	session *recipe.Session
}

func newScene(b *testing.B) *scene {
	b.Helper()
	// 20,000 nodes and 100,000 uploads are more than Debian's server holds by itself.
	s := &scene{b: b, server: zktest.Start(b, zktest.WithHeap("2g"))}
	// Who watches hardly pings, so that what is counted is the daemons'.
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server.Addr()}, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	if s.session, err = client.Session(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// put makes records, many in a transaction.
func (s *scene) put(ops []recipe.Op) {
	s.b.Helper()
	for part := range slices.Chunk(ops, 200) {
		if _, err := s.session.Multi(s.b.Context(), part...); err != nil {
			s.b.Fatal(err)
		}
	}
}

// raw is how long one write takes in this run when nothing else is asked.
func (s *scene) raw() time.Duration {
	s.b.Helper()
	at, err := s.session.Create(s.b.Context(), "/raw-", nil, recipe.Sequential)
	if err != nil {
		s.b.Fatal(err)
	}
	data, times := make([]byte, 900), make([]time.Duration, 200)
	for i := range times {
		start := time.Now()
		if _, err := s.session.Set(s.b.Context(), at, data, recipe.AnyVersion); err != nil {
			s.b.Fatal(err)
		}
		times[i] = time.Since(start)
	}
	return bench.Percentile(times, 0.5)
}

// until looks each millisecond, so that what is measured is no longer than that.
func (s *scene) until(cond func() bool, what string) {
	s.b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			s.b.Fatalf("not in five minutes: %s", what)
		}
	}
}

// ms reports a time in milliseconds.
func (s *scene) ms(d time.Duration, unit string) {
	s.b.ReportMetric(float64(d.Microseconds())/1000, unit)
}
