package launcher_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/bench"
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
// processor: in the launcher, and in all that the burst needs, which is what a machine without a
// free processor is slower by, and which what else the machine does disturbs less than the time.
type pairs struct{ longer, busier, dearer []float64 }

// report tells the median, and the least and the most, which say how much the median is
// worth on this machine.
func (p pairs) report(b *testing.B) {
	b.Helper()
	for unit, list := range map[string][]float64{"longer": p.longer, "busier": p.busier, "dearer": p.dearer} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], "%-"+unit)
		b.ReportMetric(list[0], "%-"+unit+"-least")
		b.ReportMetric(list[len(list)-1], "%-"+unit+"-most")
	}
}

// burst is what 1,000 requests at once took.
type burst struct{ took, launcher, all time.Duration }

// rounds is how many pairs of bursts are compared.
const rounds = 5

// inTurns is how long 1,000 requests take, in the median, without and with what a launcher is
// given in one burst of each pair. The one without is the first in every other pair, so that
// a machine that grows slower favours neither.
func inTurns(b *testing.B, give func(c child, it bool) child) (without, with time.Duration, more pairs) {
	b.Helper()
	bursts := map[bool][]burst{}
	for n := range 2 * rounds {
		it := (n%2 == 1) != (n/2%2 == 1)
		one := burstOf(b, func(c child) child { return give(c, it) })
		b.Logf("%v: %v, launcher %v of %v", it, one.took, one.launcher, one.all)
		bursts[it] = append(bursts[it], one)
	}
	pick := func(of func(burst) time.Duration) (off, on []time.Duration, percents []float64) {
		for i, with := range bursts[true] {
			off, on = append(off, of(bursts[false][i])), append(on, of(with))
			percents = append(percents, 100*(on[i].Seconds()/off[i].Seconds()-1))
		}
		return off, on, percents
	}
	_, _, more.busier = pick(func(one burst) time.Duration { return one.launcher })
	_, _, more.dearer = pick(func(one burst) time.Duration { return one.all })
	off, on, longer := pick(func(one burst) time.Duration { return one.took })
	more.longer = longer
	return bench.Percentile(off, 0.5), bench.Percentile(on, 0.5), more
}

// burstOf measures a burst on a new server, with a new launcher.
func burstOf(b *testing.B, give func(child) child) burst {
	b.Helper()
	const count = 1000
	s := &scene{b: b, server: zktest.Start(b)}
	client := s.dial()
	cmd, stop := give(child{Server: s.server.Addr(), Instances: count + 10, Boot: 100 * time.Millisecond}).start(b)
	s.ask(zuul.Wish{Labels: []string{"small"}})
	before := s.server.CPU(b) + processCPU()
	took := s.mixedBurst(count)
	s.ask(zuul.Wish{Labels: []string{"small"}, Fresh: true}) // it has heard of all its writes
	stop()                                                   // what it still had to do is a part of it
	launcher := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	all := launcher + s.server.CPU(b) + processCPU() - before
	s.zuul.Close()
	client.Close()
	s.server.Kill()
	return burst{took, launcher, all}
}

// processCPU is how much time of a processor this process has taken.
func processCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
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
