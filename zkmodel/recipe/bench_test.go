package recipe_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// The benchmarks print what they measure beside the raw limit of the same run:
// the client library on the same server, doing nothing but the requests.

// raw returns a connection of the client library, as it comes.
func raw(b *testing.B, addr string) *zk.Conn {
	b.Helper()
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	must(b, err)
	b.Cleanup(conn.Close)
	return conn
}

// median returns the middle of times.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// timeWrites returns the median time of a raw write.
func timeWrites(b *testing.B, conn *zk.Conn, path string) time.Duration {
	b.Helper()
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatal(err)
	}
	times := make([]time.Duration, 500)
	for i := range times {
		start := time.Now()
		_, err := conn.Set(path, []byte("x"), -1)
		must(b, err)
		times[i] = time.Since(start)
	}
	return median(times)
}

// BenchmarkLock measures lock and unlock without contention.
func BenchmarkLock(b *testing.B) {
	server := zktest.Start(b)
	s := session(b, dial(b, "", through(server.Addr())))
	write := timeWrites(b, raw(b, server.Addr()), "/raw")
	must(b, s.EnsurePath(b.Context(), "/lock"))
	before := server.Requests(b)
	for b.Loop() {
		held, err := recipe.NewLock(s, "/lock", "").Try(b.Context())
		must(b, err)
		must(b, held.Release(b.Context()))
	}
	b.ReportMetric(float64(server.Requests(b)-before)/float64(b.N), "requests/op")
	b.ReportMetric(micros(write), "µs/raw-write")
}

// BenchmarkHandOver measures the time from the release of a lock in one process
// to its being held in another.
func BenchmarkHandOver(b *testing.B) {
	server := zktest.Start(b)
	write := timeWrites(b, raw(b, server.Addr()), "/raw")
	s, ctx := session(b, dial(b, "", through(server.Addr()))), b.Context()
	other := startPartner(b, server.Addr())
	var times []time.Duration
	for b.Loop() {
		held, err := recipe.NewLock(s, "/lock", "", recipe.EnsureParents()).Acquire(ctx)
		must(b, err)
		b.StopTimer()
		other.tell(b) // to stand in line
		waiting(b, s, 2)
		b.StartTimer()
		start := time.Now().UnixNano()
		must(b, held.Release(ctx))
		times = append(times, time.Duration(other.hear(b)-start))
		b.StopTimer()
		other.tell(b) // to release
		other.hear(b)
		b.StartTimer()
	}
	p50 := median(times)
	b.ReportMetric(micros(p50), "µs/p50")
	b.ReportMetric(micros(write), "µs/raw-write")
	b.ReportMetric(float64(p50)/float64(write), "x-raw-write")
}

// waiting returns when n contenders stand in line, and the last of them has had
// the time to set its watch.
func waiting(b *testing.B, s *recipe.Session, n int) {
	b.Helper()
	zktest.Eventually(b, func() bool {
		line, err := recipe.Contenders(b.Context(), s, "/lock")
		return err == nil && len(line) == n
	}, "%d contenders wait", n)
	<-time.After(2 * time.Millisecond)
}

const (
	benchImages    = 10
	benchBuilds    = 1000 // an image
	benchProviders = 10   // one upload each, a build
)

// benchUpload is a record as Nodepool writes it.
const benchUpload = `{"state": "ready", "state_time": 1700000000.123456, "external_id": "8c7b1ad9-9f3c-4b06-8f54-8f2dd2d0c1a7", ` +
	`"external_name": "debian-bookworm-1700000000", "format": "qcow2", "username": "zuul", "python_path": "auto", "shell_type": null}`

func benchBuildPath(i int) string {
	return fmt.Sprintf("/images/image-%d/builds/%010d", i%benchImages, i/benchImages)
}

func benchUploadPath(build, provider int) string {
	return fmt.Sprintf("%s/providers/provider-%02d/images/0000000001", benchBuildPath(build), provider)
}

// fill writes the tree of a very large site.
func fill(b *testing.B, s *recipe.Session) {
	b.Helper()
	for i := range benchImages {
		must(b, s.EnsurePath(b.Context(), fmt.Sprintf("/images/image-%d/builds/lock", i)))
	}
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(16)
	for i := range benchImages * benchBuilds {
		g.Go(func() error {
			build := benchBuildPath(i)
			ops := []recipe.Op{
				recipe.OpCreate(build, []byte(benchUpload), recipe.Persistent),
				recipe.OpCreate(build+"/providers", nil, recipe.Persistent),
			}
			for p := range benchProviders {
				upload := benchUploadPath(i, p)
				images := upload[:strings.LastIndexByte(upload, '/')]
				ops = append(ops,
					recipe.OpCreate(strings.TrimSuffix(images, "/images"), nil, recipe.Persistent),
					recipe.OpCreate(images, nil, recipe.Persistent),
					recipe.OpCreate(upload, []byte(benchUpload), recipe.Persistent))
			}
			_, err := s.Multi(ctx, ops...)
			return err
		})
	}
	must(b, g.Wait())
}

// benchTree follows what zkmodel follows of the images.
var benchTree = recipe.TreeOptions{
	Filter: func(path string) recipe.Interest {
		switch strings.Count(path, "/") {
		case 1, 2, 3, 5, 7:
			return recipe.Children
		case 4:
			return recipe.Data | recipe.Children
		case 8:
			return recipe.Data
		}
		return recipe.None
	},
	Known: func(path string) []string {
		if strings.Count(path, "/") == 6 {
			return []string{"images"}
		}
		return nil
	},
}

// benchReads is how many reads it takes to load that tree.
const benchReads = benchImages * benchBuilds * (3 + 2*benchProviders)

// readRate returns how many nodes a second the client library reads, with as
// many requests under way as a Tree has.
func readRate(b *testing.B, conn *zk.Conn) float64 {
	b.Helper()
	const workers = 128
	start := time.Now()
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := w; i < benchImages*benchBuilds*benchProviders; i += workers {
				if _, _, err := conn.Get(benchUploadPath(i/benchProviders, i%benchProviders)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	work.Wait()
	return benchImages * benchBuilds * benchProviders / time.Since(start).Seconds()
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkTree loads 10,000 builds with 100,000 uploads, and measures how fast,
// how large, and how soon a change is seen. The raw rate is measured before and
// after each load, since it changes with what else the machine does.
func BenchmarkTree(b *testing.B) {
	server := zktest.Start(b, zktest.WithHeap("2g"))
	writer := session(b, dial(b, "", through(server.Addr())))
	fill(b, writer)
	conn := raw(b, server.Addr())
	type load struct{ rate, raw float64 }
	var loads []load
	for b.Loop() {
		before := readRate(b, conn)
		for range 3 {
			var rate float64
			following(b, server.Addr(), func(_ *recipe.Tree, took time.Duration) { rate = benchReads / took.Seconds() })
			after := readRate(b, conn)
			loads = append(loads, load{rate, (before + after) / 2})
			before = after
		}
		empty := heap()
		following(b, server.Addr(), func(tree *recipe.Tree, _ time.Duration) {
			b.ReportMetric(heap()-empty, "MB-heap")
			b.ReportMetric(micros(visible(b, tree, writer)), "µs-visible-p50")
			b.ReportMetric(atRest(b, server), "requests/s-at-rest")
		})
	}
	slices.SortFunc(loads, func(x, y load) int { return cmp.Compare(x.rate/x.raw, y.rate/y.raw) })
	median := loads[len(loads)/2]
	b.ReportMetric(median.rate, "reads/s")
	b.ReportMetric(median.raw, "raw-reads/s")
	b.ReportMetric(100*median.rate/median.raw, "%-of-raw")
}

// following loads a tree in a session of its own, so that all watches are new, and
// calls use with it and how long that took.
func following(b *testing.B, addr string, use func(tree *recipe.Tree, took time.Duration)) {
	b.Helper()
	c := dial(b, "", through(addr))
	defer c.Close()
	session(b, c)
	ctx, cancel := context.WithCancel(b.Context())
	tree := recipe.NewTree(c, "/images", benchTree)
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- tree.Run(ctx) }()
	must(b, tree.WaitSynced(ctx))
	use(tree, time.Since(start))
	cancel()
	want(b, <-done, context.Canceled)
}

// atRest returns how many requests a second the server gets while nothing
// happens, from three clients: each pings every third of its time-out.
func atRest(b *testing.B, server *zktest.Server) float64 {
	b.Helper()
	const rest = 10 * time.Second
	before := server.Requests(b)
	wait(b.Context(), rest)
	return float64(server.Requests(b)-before-1) / rest.Seconds()
}

// visible returns the median time from a write to its being seen.
func visible(b *testing.B, tree *recipe.Tree, s *recipe.Session) time.Duration {
	b.Helper()
	sub := tree.Subscribe(nil)
	defer sub.Close()
	times := make([]time.Duration, 300)
	for i := range times {
		start := time.Now()
		_, err := s.Set(b.Context(), benchUploadPath(i, 3), []byte(benchUpload+" "), recipe.AnyVersion)
		must(b, err)
		<-sub.C()
		times[i] = time.Since(start)
	}
	return median(times)
}
