package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// rooms are what the clouds hold in truth, 240 in all, and believed is what the
// configuration says of each.
var rooms = []int{1, 2, 5, 5, 10, 10, 20, 20, 40, 40, 43, 44}

const believed = 250

// What is asked of a launcher before clouds that refuse.
const (
	mostFirst  = 5                // refusals of a cloud while all is filled
	mostMinute = 4                // refusals of a full cloud in a minute in which requests wait
	toldTime   = time.Second      // until a place is used that came free by our own doing
	probeTime  = 32 * time.Second // until a place is used that only a trial can find
)

// crowdedSky is a set of clouds with launchers that serve them, and a requestor.
type crowdedSky struct {
	b       *testing.B
	root    string // of its tree
	clouds  []*cloud
	zuul    *zuul.Client
	session *recipe.Session
	looks   int // records made to see how many there were
}

// skyOptions say what is tried.
type skyOptions struct {
	launchers int
	resource  string
	seed      uint64
	told      bool // the clouds' limits are true, and count
	shown     bool // they are true, and do not count
}

func newSky(b *testing.B, server *zktest.Server, o skyOptions) *crowdedSky {
	b.Helper()
	s := openSky(b, server)
	cfg := &configs.Config{Labels: []configs.Label{{Name: "small"}}}
	for i, room := range rooms {
		p := skyProvider(fmt.Sprintf("cloud-%02d", i), !o.told)
		c, err := newCloud(p, room, o.seed)
		if err != nil {
			b.Fatal(err)
		}
		c.tells, c.resource = o.told || o.shown, o.resource
		s.clouds = append(s.clouds, c)
		cfg.Providers = append(cfg.Providers, p)
	}
	for i := range o.launchers {
		s.start(dialChroot(b, server, s.root), cfg, fmt.Sprintf("host-%d", i))
	}
	return s
}

// openSky connects to a new tree of a server.
func openSky(b *testing.B, server *zktest.Server) *crowdedSky {
	b.Helper()
	s := &crowdedSky{b: b, root: fmt.Sprintf("/sky-%d", time.Now().UnixNano())}
	admin := dialChroot(b, server, "")
	session, err := admin.Session(b.Context())
	if err == nil {
		err = session.EnsurePath(b.Context(), s.root)
	}
	if err != nil {
		b.Fatal(err)
	}
	if s.session, err = dialChroot(b, server, s.root).Session(b.Context()); err != nil {
		b.Fatal(err)
	}
	if s.zuul, err = zuul.Dial(b.Context(), []string{server.Addr()}, s.root, "bench"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.zuul.Close)
	return s
}

func dialChroot(b *testing.B, server *zktest.Server, root string) *recipe.Client {
	b.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{server.Addr()}, Chroot: root, Timeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return client
}

func skyProvider(name string, ignore bool) configs.Provider {
	return configs.Provider{
		Name: name, Driver: configs.DriverFake, MaxConcurrency: -1, LaunchRetries: 3, LaunchTimeout: time.Minute,
		CloudImages: []configs.CloudImage{{Name: "image", Username: "root", ConnectionType: "ssh", ConnectionPort: 22}},
		Pools: []configs.Pool{{
			Name: "main", MaxServers: believed, MaxCores: -1, MaxRAM: -1, MaxVolumes: -1, MaxVolumeGB: -1,
			IgnoreProviderQuota: ignore, Labels: []configs.PoolLabel{{Name: "small", CloudImage: "image"}},
		}},
	}
}

// start runs a launcher until the benchmark ends.
func (s *crowdedSky) start(client *recipe.Client, cfg *configs.Config, host string) {
	s.b.Helper()
	level := hclog.Off
	if os.Getenv("BENCH_LOG") != "" {
		level = hclog.LevelFromString(os.Getenv("BENCH_LOG"))
	}
	byName := map[string]*cloud{}
	for _, c := range s.clouds {
		byName[c.Name()] = c
	}
	l, err := launcher.New(cfg, launcher.Deps{
		Client: client, Hostname: host, FQDN: host, Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: level, Name: host}),
		Open: func(p configs.Provider) (providers.Provider, error) { return byName[p.Name], nil },
	})
	if err != nil {
		s.b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.b.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	s.b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, recipe.ErrClosed) {
			s.b.Error(err)
		}
	})
	zktest.Eventually(s.b, func() bool { return l.Ready() == nil }, "launcher %s serves", host)
}

// ask submits so many requests at once.
func (s *crowdedSky) ask(count int) []string {
	s.b.Helper()
	ids := make([]string, count)
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() {
			var err error
			if ids[i], err = s.zuul.Submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}); err != nil {
				s.b.Error(err)
			}
		})
	}
	group.Wait()
	return ids
}

// fill asks for as many nodes as there is room for, and returns how long that took.
func (s *crowdedSky) fill() (time.Duration, []zuul.Outcome) {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 90*time.Second)
	defer cancel()
	total := 0
	for _, room := range rooms {
		total += room
	}
	start := time.Now()
	ids, outs := s.ask(total), make([]zuul.Outcome, total)
	var done atomic.Int32
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			var err error
			if outs[i], err = s.zuul.Wait(ctx, id); err == nil && outs[i].State == "fulfilled" {
				done.Add(1)
			}
		})
	}
	group.Wait()
	if int(done.Load()) != total {
		s.b.Errorf("%d of %d requests were fulfilled in %s", done.Load(), total, time.Since(start))
	}
	return time.Since(start), outs
}

// records is how many node records were ever made.
func (s *crowdedSky) records() int {
	s.b.Helper()
	name, err := s.session.Create(s.b.Context(), zkmodel.NodesRoot+"/", nil, recipe.Sequential)
	if err != nil {
		s.b.Fatal(err)
	}
	if err := s.session.Delete(s.b.Context(), name, recipe.AnyVersion); err != nil {
		s.b.Fatal(err)
	}
	var id int
	if _, err := fmt.Sscanf(name[strings.LastIndexByte(name, '/')+1:], "%d", &id); err != nil {
		s.b.Fatal(err)
	}
	return id
}

// totals are what all clouds have counted.
func (s *crowdedSky) totals() (created, most, refused int) {
	for _, c := range s.clouds {
		made, no, _ := c.figures()
		created, refused, most = created+made, refused+no, max(most, no)
	}
	return created, most, refused
}

// held is what each cloud holds.
func (s *crowdedSky) held() (all []int) {
	for _, c := range s.clouds {
		_, _, held := c.figures()
		all = append(all, held)
	}
	return all
}

// between is how many records and machines were ever asked for, at a moment at which no launcher is between the two.
func (s *crowdedSky) between() (records, created int) {
	s.b.Helper()
	for range 100 {
		created, _, _ = s.totals()
		records = s.records() - s.looks
		s.looks++ // it makes one
		sleep(s.b.Context(), 200*time.Millisecond)
		if after, _, _ := s.totals(); after == created {
			break
		}
	}
	return records, created
}

// minute lets requests wait for a minute beside full clouds.
func (s *crowdedSky) minute() {
	s.b.Helper()
	records, created := s.between()
	before := make([]int, len(s.clouds))
	for i, c := range s.clouds {
		_, before[i], _ = c.figures()
	}
	sleep(s.b.Context(), time.Minute)
	most := 0
	for i, c := range s.clouds {
		_, refused, _ := c.figures()
		most = max(most, refused-before[i])
	}
	made, tried := s.between()
	made, tried = made-records, tried-created
	s.b.ReportMetric(float64(most), "refusals/minute")
	s.b.ReportMetric(float64(made-tried), "untried-records")
	if most > mostMinute || made != tried {
		s.b.Errorf("in a minute of waiting: at most %d refusals of one cloud, want %d; %d records for %d creations", most, mostMinute, made, tried)
	}
}

// first waits until one of the requests is fulfilled, and returns the others.
func (s *crowdedSky) first(ids []string, limit time.Duration) []string {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), limit)
	defer cancel()
	done := make(chan string, len(ids))
	for _, id := range ids {
		go func() {
			if out, err := s.zuul.Wait(ctx, id); err == nil && out.State == "fulfilled" {
				done <- id
			}
		}()
	}
	select {
	case got := <-done:
		left := []string{}
		for _, id := range ids {
			if id != got {
				left = append(left, id)
			}
		}
		return left
	case <-ctx.Done():
		s.b.Errorf("no request was fulfilled within %s", limit)
		return ids
	}
}

// giveBack ends the use of a fulfilled request's nodes.
func (s *crowdedSky) giveBack(out zuul.Outcome) {
	s.b.Helper()
	nodes, err := s.zuul.Accept(s.b.Context(), out)
	if err = errors.Join(err, s.zuul.Return(nodes...)); err != nil {
		s.b.Error(err)
	}
}

// freed measures how soon a place is used that came free by our own doing.
func (s *crowdedSky) freed(waiting []string, out zuul.Outcome) []string {
	s.b.Helper()
	before := make([]time.Time, len(s.clouds))
	for i, c := range s.clouds {
		before[i] = c.lastFreed()
	}
	s.giveBack(out)
	waiting = s.first(waiting, probeTime)
	end := time.Now()
	for i, c := range s.clouds {
		if at := c.lastFreed(); at.After(before[i]) {
			s.b.ReportMetric(end.Sub(at).Seconds(), "s/freed-place")
			if end.Sub(at) > toldTime {
				s.b.Errorf("a place that came free was used after %s, want %s", end.Sub(at), toldTime)
			}
		}
	}
	return waiting
}

// grown measures how soon room is found that nobody tells of.
func (s *crowdedSky) grown(waiting []string, c *cloud) []string {
	s.b.Helper()
	_, _, held := c.figures()
	c.resize(held + 1)
	start := time.Now()
	waiting = s.first(waiting, 2*probeTime)
	took := time.Since(start)
	s.b.ReportMetric(took.Seconds(), "s/hidden-place")
	if took > probeTime {
		s.b.Errorf("a place that only a trial could find was used after %s, want %s", took, probeTime)
	}
	return waiting
}

// turn lets one cloud shrink and another grow, and follows both.
func (s *crowdedSky) turn(outs []zuul.Outcome, waiting []string) {
	s.b.Helper()
	small, large := s.clouds[10], s.clouds[0]
	small.resize(10)
	large.resize(34)
	for _, out := range outs[:40] {
		s.giveBack(out)
	}
	ctx, cancel := context.WithTimeout(s.b.Context(), 2*probeTime)
	defer cancel()
	start := time.Now()
	for _, id := range waiting {
		if out, err := s.zuul.Wait(ctx, id); err != nil || out.State != "fulfilled" {
			s.b.Errorf("%+v: %v", out, err)
		}
	}
	s.b.ReportMetric(time.Since(start).Seconds(), "s/turned")
}

// BenchmarkRefusing measures requests for all that clouds hold which hold less than
// the configuration says, beside the same with limits that are true; the clouds'
// own counters are the judge of how often they had to refuse.
func BenchmarkRefusing(b *testing.B) {
	server := zktest.Start(b)
	for _, o := range []skyOptions{
		{launchers: 1, resource: providers.Instances, seed: 1},
		{launchers: 1, resource: providers.Cores, seed: 2},
		{launchers: 1, resource: providers.RAM, seed: 3},
		{launchers: 1, resource: providers.Volumes, seed: 4},
		{launchers: 1, resource: ports, seed: 5},
		{launchers: 2, resource: providers.Instances, seed: 6},
		{launchers: 2, resource: ports, seed: 7},
		{launchers: 1, resource: providers.RAM, seed: 8, shown: true},
		{launchers: 2, resource: providers.Cores, seed: 9, shown: true},
	} {
		name := fmt.Sprintf("%d/%s", o.launchers, o.resource)
		if o.shown {
			name += "-shown"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				compareFill(b, server, o)
			}
		})
	}
}

// compareFill measures one filling beside the other.
func compareFill(b *testing.B, server *zktest.Server, o skyOptions) {
	b.Helper()
	told := o
	told.told = true
	var truth time.Duration
	b.Run("told", func(b *testing.B) {
		truth, _ = newSky(b, server, told).fill()
		b.ReportMetric(truth.Seconds(), "s/all")
	})
	b.Run("refusing", func(b *testing.B) {
		s := newSky(b, server, o)
		took, outs := s.fill()
		created, most, refused := s.totals()
		b.ReportMetric(took.Seconds(), "s/all")
		b.ReportMetric(took.Seconds()/truth.Seconds(), "x-told")
		b.ReportMetric(float64(most), "refusals/cloud")
		b.ReportMetric(0, "ns/op")
		if most > mostFirst {
			b.Errorf("in %s %d creations, %d refused, %d by one cloud, want %d; of rooms %v are held %v", took, created, refused, most, mostFirst, rooms, s.held())
		}
		if o.resource != providers.Instances || b.Failed() {
			return
		}
		waiting := s.ask(40)
		s.minute()
		waiting = s.freed(waiting, outs[len(outs)-1])
		waiting = s.grown(waiting, s.clouds[3])
		s.turn(outs, waiting)
	})
}
