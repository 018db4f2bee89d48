package launcher_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/bench"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// scene is a ZooKeeper with a launcher and a requestor.
type scene struct {
	b       *testing.B
	server  *zktest.Server
	session *recipe.Session
	zuul    *zuul.Client
	pid     int
}

// newScene starts all, with records in the tree that prepare makes before the
// launcher comes.
func newScene(b *testing.B, instances int, prepare func(*scene)) *scene {
	b.Helper()
	s := &scene{b: b, server: zktest.Start(b)}
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server.Addr()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	if s.session, err = client.Session(b.Context()); err != nil {
		b.Fatal(err)
	}
	if s.zuul, err = zuul.Dial(b.Context(), []string{s.server.Addr()}, "", "bench"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.zuul.Close)
	if prepare != nil {
		prepare(s)
	}
	s.pid = child{Server: s.server.Addr(), Instances: instances, Boot: 100 * time.Millisecond}.spawn(b).Process.Pid
	s.ask(zuul.Wish{Labels: []string{"small"}}) // it works
	return s
}

// ask makes a request and returns how long it took to be fulfilled.
func (s *scene) ask(w zuul.Wish) time.Duration {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 5*time.Minute)
	defer cancel()
	start := time.Now()
	id, err := s.zuul.Submit(w)
	if err != nil {
		s.b.Error(err)
		return 0
	}
	out, err := s.zuul.Wait(ctx, id)
	if err != nil || out.State != "fulfilled" {
		s.b.Errorf("%+v: %v", out, err)
	}
	return time.Since(start)
}

// zxid is the number of the last transaction.
func (s *scene) zxid() int64 {
	s.b.Helper()
	name, err := s.session.Create(s.b.Context(), "/mark-", nil, recipe.Sequential)
	if err != nil {
		s.b.Fatal(err)
	}
	stat, _, err := s.session.Exists(s.b.Context(), name)
	if err != nil {
		s.b.Fatal(err)
	}
	return stat.Czxid & 0xffffffff
}

// rawRate is how many times a second write can be done, with many under way.
func (s *scene) rawRate(write func(conn *zk.Conn, data []byte) error) float64 {
	s.b.Helper()
	conn, _, err := zk.Connect([]string{s.server.Addr()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		s.b.Fatal(err)
	}
	defer conn.Close()
	data := make([]byte, 900) // in the shape of a node's record
	var writes atomic.Int64
	start := time.Now()
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for time.Since(start) < time.Second {
				if err := write(conn, data); err != nil {
					s.b.Error(err)
					return
				}
				writes.Add(1)
			}
		})
	}
	group.Wait()
	return float64(writes.Load()) / time.Since(start).Seconds()
}

// rawWrite is what one write is: a record replaced.
func rawWrite(conn *zk.Conn, data []byte) error {
	_, err := conn.Set("/raw", data, -1)
	return err
}

// rawRequest is what a request needs at least, done by somebody who need not
// look: it comes, it is taken with a new node, the launch begins, it is done.
func rawRequest(conn *zk.Conn, data []byte) error {
	acl := zk.WorldACL(zk.PermAll)
	request, err := conn.Create("/raw/", data[:500], zk.FlagSequence, acl)
	if err != nil {
		return err
	}
	lock := func(at string) []any {
		return []any{
			&zk.CreateRequest{Path: at + "/lock", Acl: acl},
			&zk.CreateRequest{Path: at + "/lock/x", Data: []byte{}, Acl: acl, Flags: zk.FlagEphemeral | zk.FlagSequence},
		}
	}
	answers, err := conn.Multi(append([]any{
		&zk.SetDataRequest{Path: request, Data: data[:500], Version: 0},
		&zk.CheckVersionRequest{Path: "/raw", Version: -1},
		&zk.CreateRequest{Path: "/raw/", Data: data, Acl: acl, Flags: zk.FlagSequence},
	}, lock(request)...)...)
	if err != nil {
		return err
	}
	node, held := answers[2].String, answers[4].String
	answers, err = conn.Multi(append([]any{
		&zk.CheckVersionRequest{Path: held, Version: -1},
		&zk.SetDataRequest{Path: node, Data: data, Version: 0},
	}, lock(node)...)...)
	if err != nil {
		return err
	}
	_, err = conn.Multi(
		&zk.SetDataRequest{Path: request, Data: data[:500], Version: 1},
		&zk.SetDataRequest{Path: node, Data: data, Version: 1},
		&zk.DeleteRequest{Path: answers[3].String, Version: -1},
		&zk.DeleteRequest{Path: held, Version: -1},
	)
	return err
}

// limits are what ZooKeeper gives to one client that never waits: records
// written a second, and the transactions of requests, in requests a second.
type limits struct{ writes, requests float64 }

func (s *scene) limits() limits { return limits{s.rawRate(rawWrite), s.rawRate(rawRequest)} }

// BenchmarkBurst measures requests that come all at once. The limits are measured
// before and after, as other work on the machine comes and goes.
func BenchmarkBurst(b *testing.B) {
	for _, count := range []int{200, 2000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for b.Loop() {
				s := newScene(b, count+10, nil)
				if _, err := s.session.Create(b.Context(), "/raw", nil, recipe.Persistent); err != nil {
					b.Fatal(err)
				}
				first := s.limits()
				times := make([]time.Duration, count)
				before, start := s.zxid(), time.Now()
				var group sync.WaitGroup
				for i := range count {
					group.Go(func() { times[i] = s.ask(zuul.Wish{Labels: []string{"small"}, Fresh: true}) })
				}
				group.Wait()
				took := time.Since(start)
				writes := float64(s.zxid()-before-1) / float64(count)
				rate, last := float64(count)/took.Seconds(), s.limits()
				raw, bare := (first.writes+last.writes)/2, (first.requests+last.requests)/2
				b.ReportMetric(rate, "requests/s")
				b.ReportMetric(bench.Percentile(times, 0.5).Seconds(), "s/p50")
				b.ReportMetric(writes, "writes/request")
				b.ReportMetric(raw, "raw-writes/s")
				b.ReportMetric(100*rate/(raw/writes), "%-of-raw-writes")
				b.ReportMetric(bare, "bare-requests/s")
				b.ReportMetric(100*rate/bare, "%-of-bare-requests")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkThroughQuota measures 200 requests at once through room for 20, each
// node given back as soon as it is there.
func BenchmarkThroughQuota(b *testing.B) {
	const count = 200
	for b.Loop() {
		s := newScene(b, 21, nil) // one is taken already
		times := make([]time.Duration, count)
		start := time.Now()
		var group sync.WaitGroup
		for i := range count {
			group.Go(func() {
				begin := time.Now()
				err := s.zuul.Run(b.Context(), zuul.Wish{Labels: []string{"small"}, Fresh: true}, func([]*zuul.Node) error {
					times[i] = time.Since(begin)
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
		group.Wait()
		b.ReportMetric(count/time.Since(start).Seconds(), "requests/s")
		b.ReportMetric(bench.Percentile(times, 0.5).Seconds(), "s/p50")
		b.ReportMetric(0, "ns/op")
	}
}

// crowd makes 5,000 ready nodes, and 1,000 requests that wait for a full pool.
func crowd(s *scene) {
	s.b.Helper()
	ctx := s.b.Context()
	const nodes, requests, batch = 5000, 1000, 100
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot} {
		if err := s.session.EnsurePath(ctx, path); err != nil {
			s.b.Fatal(err)
		}
	}
	now := zkmodel.EpochOf(time.Now())
	node := func(pool, label string, state zkmodel.NodeState) recipe.Op {
		n := &zkmodel.Node{
			Provider: "cloud", Pool: pool, Type: zkmodel.Strings{label}, InterfaceIP: "fake", HostKeys: zkmodel.Strings{"ssh-rsa FAKEKEY"},
			Resources: map[string]int{"instances": 1, "cores": 4, "ram": 8192}, ExternalID: zkmodel.TextValue("external"),
		}
		n.State, n.StateTime, n.CreatedTime = state, now, now
		data, err := n.Encode()
		if err != nil {
			s.b.Fatal(err)
		}
		return recipe.OpCreate(zkmodel.NodesRoot+"/", data, recipe.Sequential)
	}
	ops := []recipe.Op{node("full", "huge", zkmodel.NodeHold)}
	for range nodes {
		ops = append(ops, node("main", "small", zkmodel.NodeReady))
	}
	for range requests {
		r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"huge"}, Requestor: "bench", Reuse: true, CreatedTime: now}
		r.State, r.StateTime = zkmodel.RequestRequested, now
		data, err := r.Encode()
		if err != nil {
			s.b.Fatal(err)
		}
		ops = append(ops, recipe.OpCreate(zkmodel.RequestPath("200-"), data, recipe.Sequential))
	}
	for part := range slices.Chunk(ops, batch) {
		if _, err := s.session.Multi(ctx, part...); err != nil {
			s.b.Fatal(err)
		}
	}
}

// BenchmarkCrowded measures how soon a new request is answered, from ready nodes,
// beside 5,000 nodes and 1,000 requests that wait.
func BenchmarkCrowded(b *testing.B) {
	for b.Loop() {
		s := newScene(b, 6000, crowd)
		times := make([]time.Duration, 200)
		for i := range times {
			times[i] = s.ask(zuul.Wish{Labels: []string{"small"}})
		}
		b.ReportMetric(bench.Percentile(times, 0.5).Seconds()*1000, "ms/p50")
		b.ReportMetric(bench.Percentile(times, 0.99).Seconds()*1000, "ms/p99")
		b.ReportMetric(bench.Resident(b, s.pid), "MiB-resident")
		b.ReportMetric(0, "ns/op")
	}
}
