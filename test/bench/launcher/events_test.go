package launcher_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel/recipe"
)

// BenchmarkEvents compares bursts of a launcher that tells its changes, to a file, with
// bursts of one that does not, in turns. A tenth of the requests fail, each of which is
// told: nodes that go well are not.
func BenchmarkEvents(b *testing.B) {
	for b.Loop() {
		off, on, more := inTurns(b, func(c child, told bool) child { c.Events = told; return c })
		b.ReportMetric(1000/off.Seconds(), "requests/s-untold")
		b.ReportMetric(1000/on.Seconds(), "requests/s-told")
		more.report(b)
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkFleet compares bursts of a launcher whose decisions stand under the fleet's lock,
// as with -c zk:, with bursts of one whose configuration is a file, in turns.
func BenchmarkFleet(b *testing.B) {
	for b.Loop() {
		file, pushed, more := inTurns(b, func(c child, pushed bool) child { c.Fleet = pushed; return c })
		b.ReportMetric(1000/file.Seconds(), "requests/s-file")
		b.ReportMetric(1000/pushed.Seconds(), "requests/s-fleet")
		more.report(b)
		b.ReportMetric(0, "ns/op")
	}
}

// pairs are by how many percent the second of each pair of bursts takes longer, and more of a
// processor in the launcher, which what else the machine does disturbs less.
type pairs struct{ longer, busier []float64 }

// report tells the median, and the least and the most, which say how much the median is
// worth on this machine.
func (p pairs) report(b *testing.B) {
	b.Helper()
	for unit, list := range map[string][]float64{"longer": p.longer, "busier": p.busier} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], "%-"+unit)
		b.ReportMetric(list[0], "%-"+unit+"-least")
		b.ReportMetric(list[len(list)-1], "%-"+unit+"-most")
	}
}

// inTurns is how long 1,000 requests take, in the median, without and with what a launcher is
// given in one burst of each pair. The one without is the first in every other pair, so that
// a machine that grows slower favours neither.
func inTurns(b *testing.B, give func(c child, it bool) child) (without, with time.Duration, more pairs) {
	b.Helper()
	const count, rounds = 1000, 5
	times, busy := map[bool][]time.Duration{}, map[bool][]time.Duration{}
	for n := range 2 * rounds {
		it := (n%2 == 1) != (n/2%2 == 1)
		s := &scene{b: b, server: zktest.Start(b)}
		client := s.dial()
		cmd, stop := give(child{Server: s.server.Addr(), Instances: count + 10, Boot: 100 * time.Millisecond}, it).start(b)
		s.ask(zuul.Wish{Labels: []string{"small"}})
		times[it] = append(times[it], s.mixedBurst(count))
		stop()
		busy[it] = append(busy[it], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		s.zuul.Close()
		client.Close()
		s.server.Kill()
	}
	percents := func(of map[bool][]time.Duration) (list []float64) {
		for i, t := range of[true] {
			list = append(list, 100*(t.Seconds()/of[false][i].Seconds()-1))
		}
		return list
	}
	more = pairs{percents(times), percents(busy)}
	return percentile(times[false], 0.5), percentile(times[true], 0.5), more
}

// dial connects a scene to its server.
func (s *scene) dial() *recipe.Client {
	s.b.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{s.server.Addr()}})
	if err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(client.Close)
	if s.session, err = client.Session(s.b.Context()); err != nil {
		s.b.Fatal(err)
	}
	if s.zuul, err = zuul.Dial(s.b.Context(), []string{s.server.Addr()}, "", "bench"); err != nil {
		s.b.Fatal(err)
	}
	s.b.Cleanup(s.zuul.Close)
	return client
}

// mixedBurst is how long requests take that come all at once and of which a tenth fail.
func (s *scene) mixedBurst(count int) time.Duration {
	start := time.Now()
	var group sync.WaitGroup
	for i := range count {
		group.Go(func() {
			if i%10 != 0 {
				s.ask(zuul.Wish{Labels: []string{"small"}, Fresh: true})
				return
			}
			ctx, cancel := context.WithTimeout(s.b.Context(), 5*time.Minute)
			defer cancel()
			id, err := s.zuul.Submit(zuul.Wish{Labels: []string{"moon"}})
			if err == nil {
				_, err = s.zuul.Wait(ctx, id)
			}
			if err != nil {
				s.b.Error(err)
			}
		})
	}
	group.Wait()
	return time.Since(start)
}
