package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

var (
	length = flag.Duration("chaos", 0, "how long faults are injected; 0 is not at all")
	seed   = flag.Uint64("seed", 0, "who does what; 0 draws a seed")
	keep   = flag.Bool("keep", false, "keep logs and files although all went well")
)

func TestChaos(t *testing.T) {
	if *length == 0 {
		t.Skip("make chaos runs it")
	}
	if inside(t) {
		return
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d, for %s; again: make chaos CHAOS=%s SEED=%d", *seed, *length, *length, *seed)
	w := newWorld(t)
	t.Logf("network: %s", w.net.says())
	t.Cleanup(func() {
		if t.Failed() {
			w.showLogs(t)
			w.faults.show()
			t.Logf("again: make chaos CHAOS=%s SEED=%d", *length, *seed)
		}
	})
	watching, blind := context.WithCancel(t.Context())
	defer blind()
	var looking sync.WaitGroup
	for _, h := range w.hosts {
		h.spawn()
	}
	defer func() {
		for _, h := range w.hosts {
			h.daemon().kill()
		}
	}()
	w.begin()
	looking.Go(func() { w.watch.run(watching) })
	looking.Go(func() { w.builds.watch(watching.Done()) })
	w.live()
	settled := w.settle()
	blind()
	looking.Wait()
	for _, h := range w.hosts {
		if settled {
			h.retire()
		} else {
			h.dump()
		}
	}
	w.noSecret()
	for _, left := range w.leftovers() {
		w.watch.wrong("is left: %s", left)
	}
	w.watch.report()
	w.faults.report()
}

// begin waits until every image serves everywhere, so that from then on it has to.
func (w *world) begin() {
	w.t.Helper()
	start := time.Now()
	for {
		g, err := w.watch.gallery(w.t.Context())
		if err == nil {
			ready, missing := g.ready(), 0
			for provider, images := range serves() {
				for _, image := range images {
					if ready[place{image, provider}] == 0 {
						missing++
					}
				}
			}
			if missing == 0 {
				break
			}
		}
		if time.Since(start) > settleTime {
			w.t.Fatalf("no site after %s", settleTime)
		}
		wait(w.t.Context(), lookEvery)
	}
	w.t.Logf("%6.1f s until every image served", time.Since(start).Seconds())
	w.last = w.save(0)
	w.number = 1
}

// patience is how long requestors may take to end in peace what they have begun, once all is well again.
const patience = 5 * time.Minute

// end waits for requestors and faults; who does not end is shown where it stands.
func (w *world) end(busy *sync.WaitGroup) {
	w.t.Helper()
	ended := make(chan struct{})
	go func() { busy.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
		w.t.Fatalf("not all requestors and faults have ended %s after the last fault", patience)
	}
}

// live lets requestors and faults loose, until the time is over and all has ended that was
// begun.
func (w *world) live() {
	calm, quiet := context.WithCancel(w.t.Context())
	defer quiet()
	var busy sync.WaitGroup
	w.watch.flow.begin(time.Now())
	for i := range requestors {
		busy.Go(func() { newCustomer(w, i).live(calm) })
	}
	busy.Go(func() { w.operate(calm) })
	busy.Go(func() { w.faults.run(calm) })
	wait(calm, *length)
	// On a busy machine a round takes longer.
	for range 60 {
		if w.faults.complete() || !wait(calm, time.Second) {
			break
		}
	}
	quiet()
	w.faults.note("end", "no more faults")
	w.end(&busy)
	w.watch.flow.end()
	w.faults.note("end", "no more requests")
}
