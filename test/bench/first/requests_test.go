package first_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/bench"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	clouds   = 20
	labels   = 10
	requests = 500
)

// launches is the configuration of a launcher.
func launches() string {
	sections := list(clouds, `{name: cloud-%d, driver: fake, cloud: fake, fake: {max-instances: 5000}, cloud-images: [{name: image}], `+
		`pools: [{name: main, max-servers: 4000, labels: LABELS}]}`)
	offered := list(labels, "{name: label-%d, cloud-image: image, min-ram: 1}")
	return "labels: " + list(labels, "{name: label-%d}") + "\nproviders: " + strings.ReplaceAll(sections, "LABELS", offered) + "\n"
}

// BenchmarkRequests measures requests that come at once, beside nodes in use.
func BenchmarkRequests(b *testing.B) {
	both := built(b)
	for _, nodes := range []int{0, 5000, 20000} {
		b.Run(fmt.Sprintf("in-use=%d", nodes), func(b *testing.B) {
			both.compare(b, func(b *testing.B, program string) figures { b.Helper(); return answered(b, program, nodes) })
		})
	}
}

// answered measures one launcher.
func answered(b *testing.B, program string, nodes int) figures {
	b.Helper()
	s := newScene(b)
	s.inUse(nodes)
	s.start(program, "launcher", launches())
	jobs, err := zuul.Dial(b.Context(), []string{s.server.Addr()}, "", "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(jobs.Close)
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	run := func(label int) time.Duration {
		var took time.Duration
		begin := time.Now()
		err := jobs.Run(ctx, zuul.Wish{Labels: []string{fmt.Sprintf("label-%d", label)}, Fresh: true}, func([]*zuul.Node) error {
			took = time.Since(begin)
			return nil
		})
		if err != nil {
			b.Error(err)
		}
		return took
	}
	for label := range labels {
		run(label) // the launcher has started
	}
	s.settled(nodes)
	s.begin()
	waits := make([]time.Duration, requests)
	var group sync.WaitGroup
	for i := range waits {
		group.Go(func() { waits[i] = run(i % labels) })
	}
	group.Wait()
	took := time.Since(s.began)
	s.settled(nodes)
	out, _ := s.end()
	out["requests/s"] = requests / took.Seconds()
	out["s/p50"] = bench.Percentile(waits, 0.5).Seconds()
	return out
}

// settled waits until only the nodes in use are left.
func (s *scene) settled(nodes int) {
	s.b.Helper()
	s.until("only nodes in use are left", func() bool {
		stat, exists, err := s.session.Exists(s.b.Context(), zkmodel.NodesRoot)
		if err != nil {
			s.b.Fatal(err)
		}
		return exists && int(stat.NumChildren) == nodes
	})
}

// until polls a condition.
func (s *scene) until(what string, cond func() bool) {
	s.b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !cond(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.b.Fatalf("not in five minutes: %s", what)
		}
	}
}

// inUse creates nodes in use, spread over the providers and labels, and locks them as Zuul does.
func (s *scene) inUse(nodes int) {
	s.b.Helper()
	ctx := s.b.Context()
	if err := s.session.EnsurePath(ctx, zkmodel.NodesRoot); err != nil {
		s.b.Fatal(err)
	}
	now := zkmodel.EpochOf(time.Now())
	var ops []recipe.Op
	for i := range nodes {
		n := &zkmodel.Node{
			Provider: fmt.Sprintf("cloud-%d", i%clouds), Pool: "main", Type: zkmodel.Strings{fmt.Sprintf("label-%d", i%labels)},
			InterfaceIP: "fake", HostKeys: zkmodel.Strings{"ssh-rsa FAKEKEY"}, ExternalID: zkmodel.TextValue(fmt.Sprintf("external-%d", i)),
			Resources: map[string]int{"instances": 1, "cores": 4, "ram": 8192}, AllocatedTo: fmt.Sprintf("200-%010d", i),
		}
		n.State, n.StateTime, n.CreatedTime = zkmodel.NodeInUse, now, now
		data, err := n.Encode()
		if err != nil {
			s.b.Fatal(err)
		}
		at := fmt.Sprintf("%s/%010d", zkmodel.NodesRoot, i)
		ops = append(
			ops, recipe.OpCreate(at, data, recipe.Persistent), recipe.OpCreate(at+"/lock", nil, recipe.Persistent),
			recipe.OpCreate(fmt.Sprintf("%s/lock/%032x__lock__0000000000", at, i), nil, recipe.Ephemeral),
		)
	}
	for part := range slices.Chunk(ops, 300) {
		if _, err := s.session.Multi(ctx, part...); err != nil {
			s.b.Fatal(err)
		}
	}
}
