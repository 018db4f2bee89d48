package scale_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"poolkeeper/test/bench"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// asked is how many requests are measured.
const asked = 300

// BenchmarkNodes measures launchers beside ever more nodes, and ever more launchers
// beside 1,000: how soon the first request is answered, how long one takes that a ready
// node answers, and what it costs.
func BenchmarkNodes(b *testing.B) {
	series := []struct{ nodes, launchers int }{{100, 1}, {1000, 1}, {5000, 1}, {20_000, 1}, {1000, 2}, {1000, 3}}
	for _, size := range series {
		b.Run(fmt.Sprintf("nodes=%d/launchers=%d", size.nodes, size.launchers), func(b *testing.B) {
			for b.Loop() {
				measureNodes(b, size.nodes, size.launchers)
			}
		})
	}
}

func measureNodes(b *testing.B, nodes, launchers int) {
	b.Helper()
	s := newScene(b)
	s.ready(nodes)
	requestor, err := zuul.Dial(b.Context(), []string{s.server.Addr()}, "", "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(requestor.Close)
	raw := s.raw()

	before, start := s.server.Requests(b), time.Now()
	var pids []int
	for n := range launchers {
		pids = append(pids, child{Server: s.server.Addr(), Host: fmt.Sprintf("launcher-%d", n), Dir: b.TempDir()}.spawn(b))
	}
	s.ask(requestor)
	s.ms(time.Since(start), "start-ms")
	<-time.After(time.Second) // the other launchers
	b.ReportMetric(float64(s.server.Requests(b)-before), "start-requests")

	times := make([]time.Duration, asked)
	before = s.server.Requests(b)
	for i := range times {
		times[i] = s.ask(requestor)
	}
	b.ReportMetric(float64(s.server.Requests(b)-before)/asked, "requests/answer")
	s.ms(bench.Percentile(times, 0.5), "answer-p50-ms")
	s.ms(bench.Percentile(times, 0.99), "answer-p99-ms")
	s.ms(raw, "raw-write-ms")
	b.ReportMetric(resident(b, pids), "MiB")
	b.ReportMetric(0, "ns/op")
}

// ask makes a request, waits until it is fulfilled, and withdraws it, so that the node is ready
// again. It returns how long the answer took.
func (s *scene) ask(requestor *zuul.Client) time.Duration {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.Context(), 5*time.Minute)
	defer cancel()
	start := time.Now()
	id, err := requestor.Submit(zuul.Wish{Labels: []string{"small"}})
	if err != nil {
		s.b.Fatal(err)
	}
	out, err := requestor.Wait(ctx, id)
	if err != nil || out.State != "fulfilled" {
		s.b.Fatalf("%+v: %v", out, err)
	}
	took := time.Since(start)
	if err := requestor.Cancel(id); err != nil {
		s.b.Fatal(err)
	}
	return took
}

// ready makes ready nodes.
func (s *scene) ready(nodes int) {
	s.b.Helper()
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot} {
		if err := s.session.EnsurePath(s.b.Context(), path); err != nil {
			s.b.Fatal(err)
		}
	}
	now := zkmodel.EpochOf(time.Now())
	var ops []recipe.Op
	for n := range nodes {
		node := &zkmodel.Node{
			Provider: provider(0), Pool: "main", Type: zkmodel.Strings{"small"}, InterfaceIP: "fake", HostKeys: zkmodel.Strings{"ssh-rsa FAKEKEY"},
			Resources: map[string]int{"instances": 1, "cores": 4, "ram": 8192}, ExternalID: zkmodel.TextValue(fmt.Sprint("external-", n)),
		}
		node.State, node.StateTime, node.CreatedTime = zkmodel.NodeReady, now, now
		data, err := node.Encode()
		if err != nil {
			s.b.Fatal(err)
		}
		ops = append(ops, recipe.OpCreate(zkmodel.NodesRoot+"/", data, recipe.Sequential))
	}
	s.put(ops)
}
