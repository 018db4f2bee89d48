package launcher_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// BenchmarkRetreat measures how long after the failure that decides, of a canary's fifth node, the
// last of three launchers sees that the build before serves all: what it begins from then on
// boots from that. Each round has a new build, which fails; its requests are fulfilled by the
// build before.
func BenchmarkRetreat(b *testing.B) {
	large := strings.NewReplacer("max-servers: 12", "max-servers: 9999", "driver: fake", "driver: fake\n    fake: {max-instances: 9999}")
	s := newSite(b, large.Replace(withCanary("{share: 50%, for: 1h, max-failures: 5}")))
	s.config.Providers[0].LaunchRetries = 3
	old := s.image()
	all := []*running{s.launch(named("nl01")), s.launch(named("nl02")), s.launch(named("nl03"))}
	s.promoted(old, "cloud")
	var times []time.Duration
	for b.Loop() {
		bad := s.imageOf("debian")
		s.isCanary(bad, "cloud")
		for _, l := range all {
			if err := l.Tree().Barrier(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		failed := s.failures(bad)
		for len(failed()) < 4 {
			s.bootsAtLast()
		}
		back := make(chan time.Time, len(all))
		for _, l := range all {
			go func() {
				changes := l.Tree().SubscribeCanaries()
				defer changes.Close()
				for l.Tree().Image("debian").OnTrial("cloud") != nil {
					select {
					case <-changes.C():
						changes.Take()
					case <-b.Context().Done():
						return
					}
				}
				back <- time.Now()
			}()
		}
		for len(failed()) < 5 {
			s.bootsAtLast()
		}
		last := time.Time{}
		for range all {
			if at := <-back; at.After(last) {
				last = at
			}
		}
		times = append(times, last.Sub(failed()[4]))
		if v := s.debian().Verdict(bad, "cloud"); v == nil || v.Kind != zkmodel.Retreated {
			b.Fatalf("build %s has not retreated: %+v", bad.ID, v)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/p50")
	b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "ms/max")
}

// failures has the times noted at which machines fail to boot.
func (s *site) failures(b *zkmodel.Build) func() []time.Time {
	var mu sync.Mutex
	var at []time.Time
	c := s.clouds["cloud"]
	fails := s.bootFails("cloud", b, nil)
	c.SetHook(func(ctx context.Context, call fake.Call) error {
		err := fails(ctx, call)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
		}
		return err
	})
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(at)
	}
}

// bootsAtLast has a new node of debian boot, whatever machines fail before.
func (s *site) bootsAtLast() {
	s.t.Helper()
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"cloud-debian"}, Fresh: true})); out.State != "fulfilled" {
		s.t.Fatalf("%+v", out)
	}
}
