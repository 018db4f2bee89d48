package launcher_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/test/bench"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// The site of BenchmarkMixed.
const (
	mixedRequests = 150
	mixedPools    = 4
	mixedRoom     = 5 // nodes of a pool
	mixedLarge    = 4 // labels of a request at most
	mixedBoot     = time.Second
	mixedDelete   = 500 * time.Millisecond
	mixedJob      = time.Second // the longest
)

// mixedLabels are what is asked for; stock is kept of the first two.
func mixedLabels() []configs.Label {
	return []configs.Label{{Name: "small", MinReady: 2}, {Name: "large", MinReady: 2}, {Name: "huge"}}
}

// BenchmarkMixed measures 150 requests at once, for one to four nodes of three labels, through four
// pools of five nodes that three launchers serve. Stock is kept of two labels. made is the number of
// machines that were created for each node of a request.
func BenchmarkMixed(b *testing.B) {
	for b.Loop() {
		s := newMixed(b)
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same requests each time
		labels, nodes := mixedLabels(), 0
		times := make([]time.Duration, mixedRequests)
		before, _, _ := s.totals()
		start := time.Now()
		var group sync.WaitGroup
		for i := range mixedRequests {
			var w zuul.Wish
			for range 1 + random.IntN(mixedLarge) {
				w.Labels = append(w.Labels, labels[random.IntN(len(labels))].Name)
			}
			job := time.Duration(random.Int64N(int64(mixedJob)))
			nodes += len(w.Labels)
			group.Go(func() {
				err := s.zuul.Run(b.Context(), w, func([]*zuul.Node) error {
					times[i] = time.Since(start)
					sleep(b.Context(), job)
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
		took := time.Since(start)
		created, _, _ := s.totals()
		b.ReportMetric(took.Seconds(), "s/all")
		b.ReportMetric(bench.Percentile(times, 0.5).Seconds(), "s/p50")
		b.ReportMetric(bench.Percentile(times, 0.99).Seconds(), "s/p99")
		b.ReportMetric(float64(created-before)/float64(nodes), "made")
		b.ReportMetric(0, "ns/op")
	}
}

// newMixed starts three launchers beside clouds, and waits until the stock is ready.
func newMixed(b *testing.B) *crowdedSky {
	b.Helper()
	server := zktest.Start(b)
	s := openSky(b, server)
	cfg := &configs.Config{Labels: mixedLabels()}
	for i := range mixedPools {
		p := skyProvider(fmt.Sprintf("cloud-%d", i), true)
		p.Pools[0].MaxServers, p.Pools[0].Labels = mixedRoom, nil
		for _, l := range cfg.Labels {
			p.Pools[0].Labels = append(p.Pools[0].Labels, configs.PoolLabel{Name: l.Name, CloudImage: "image"})
		}
		c, err := newCloud(p, mixedPools*mixedRoom, 1) // it refuses nothing
		if err != nil {
			b.Fatal(err)
		}
		slow := p
		slow.Settings = &configs.FakeDriver{MaxInstances: mixedPools * mixedRoom, BootDelay: mixedBoot, DeleteDelay: mixedDelete}
		if c.Provider, err = fake.New(slow, hclog.NewNullLogger()); err != nil {
			b.Fatal(err)
		}
		s.clouds, cfg.Providers = append(s.clouds, c), append(cfg.Providers, p)
	}
	for i := range 3 {
		s.start(dialChroot(b, server, s.root), cfg, fmt.Sprintf("host-%d", i))
	}
	stock := 0
	for _, l := range cfg.Labels {
		stock += l.MinReady
	}
	zktest.Eventually(b, func() bool {
		made, _, _ := s.totals()
		return made == stock
	}, "the stock was asked for")
	return s
}
