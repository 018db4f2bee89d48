//go:build linux

package dib

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tellEvery is how often the daemon is told that the log has grown.
const tellEvery = 100 * time.Millisecond

// mostUnheard is how much is told without a word from the daemon: less than
// what a pipe holds.
const mostUnheard = 500

// How long a guard waits for what cannot be hurried.
const (
	killPatience  = 2 * time.Second // for killed processes to vanish
	drainPatience = time.Second     // for output that is still in the pipe
)

// umask is that of every build: diskimage-builder and elements make the folders
// of an image with it, and the umask that the daemon was started with is not theirs.
const umask = 0o022

// guardAlone is the guard below its keeper.
func guardAlone(in, out *os.File) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	syscall.Umask(umask)
	first := os.NewFile(specFD, "orders")
	var spec guardSpec
	err := json.NewDecoder(first).Decode(&spec)
	_ = first.Close() // the build needs no copy
	if err != nil {
		return fmt.Errorf("%w: read orders: %w", ErrGuard, err)
	}
	g := &guard{spec: spec, news: json.NewEncoder(out), orders: make(chan guardOrder, 1), signals: signals}
	go g.listen(json.NewDecoder(in))
	last := g.run(context.Background())
	last.Done = true
	_ = g.news.Encode(last) // nobody may be there to hear it
	return nil
}

type guard struct {
	spec    guardSpec
	news    *json.Encoder
	orders  chan guardOrder
	signals chan os.Signal
	log     record
}

// listen hands the daemon's orders on; it ends with our process at the latest.
func (g *guard) listen(orders *json.Decoder) {
	for {
		var order guardOrder
		err := orders.Decode(&order)
		if err != nil {
			order = guardOrder{Stop: "the builder is gone"} // its session lives on for a while
		}
		g.orders <- order
		if err != nil {
			return
		}
	}
}

// run is the build from its log's first line to its last.
func (g *guard) run(ctx context.Context) guardNews {
	log, err := openRecord(g.spec.Log)
	if err != nil {
		return guardNews{Failed: fmt.Sprintf("open log: %v", err)}
	}
	defer func() { _ = log.Close() }()
	g.log = log
	path, err := lookPath(g.spec.Argv[0], g.spec.Env)
	if err != nil {
		return g.failed(err)
	}
	output, input, err := os.Pipe()
	if err != nil {
		return g.failed(err)
	}
	defer func() { _ = output.Close() }()
	build, err := startBuild(path, g.spec, input)
	_ = input.Close() // the build has its own copies
	if err != nil {
		return g.failed(err)
	}
	_ = g.news.Encode(guardNews{Leader: build.leader})

	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if err := copyMasked(log, output, g.spec.Secrets); err != nil && !errors.Is(err, os.ErrClosed) {
			// Let the build see it: it must not wait for a full pipe.
			_, _ = io.Copy(io.Discard, output)
		}
	}()
	stopped, code := g.watch(ctx, build)
	news := guardNews{Stopped: stopped, Exit: code}
	news.Left = g.spec.cleanUp(ctx, build)
	drain(copied, output)
	if news.Left != "" {
		g.note("left behind: %s", news.Left)
	}
	if stopped != "" {
		g.note("build stopped: %s", stopped)
	}
	news.Output = log.end()
	fmt.Fprintf(log, ExitLine+"%d\n", code)
	return news
}

// watch waits for the leader to end, and ends it when it must.
func (g *guard) watch(ctx context.Context, build *processTree) (stopped string, code int) {
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	var told int64
	unheard := 0 // a daemon that is paused must not make us wait for it
	var until Limits
	until.Renew(sinceBoot(), g.spec.Lease)
	stop := func(reason string, patience time.Duration) {
		until.Ask(sinceBoot(), patience)
		if stopped == "" {
			stopped = reason
			build.terminate(ctx)
		}
	}
	killing := sync.OnceFunc(func() { go build.killAll(ctx, killPatience) }) // the leader's end comes through exited
	check := time.NewTimer(0)
	defer check.Stop()
	for {
		select {
		case status := <-build.exited:
			return stopped, exitCode(status)
		case order := <-g.orders:
			unheard = 0
			until.Renew(sinceBoot(), order.Lease)
			switch {
			case order.Haste:
				stop(order.Stop, min(g.spec.Grace, HasteGrace))
			case order.Stop != "":
				stop(order.Stop, g.spec.Grace)
			}
		case sig := <-g.signals:
			stop("the guard received signal "+sig.String(), g.spec.Grace)
		case <-check.C:
		case <-tell.C:
			if size := g.log.size(); size != told && unheard < mostUnheard {
				told = size
				unheard++
				_ = g.news.Encode(guardNews{Grown: told})
			}
		}
		if until.Closing(sinceBoot()) {
			stop("the builder did not renew its lease: it is paused or cut off from ZooKeeper", min(g.spec.Grace, HasteGrace))
		}
		if until.Over(sinceBoot()) {
			killing()
		}
		check.Reset(until.next(sinceBoot()))
	}
}

func (g *guard) failed(err error) guardNews {
	g.note("build failed: %v", err)
	return guardNews{Failed: err.Error()}
}

// note writes a line of our own into the log.
func (g *guard) note(format string, args ...any) {
	fmt.Fprintf(g.log, "poolkeeper: "+format+"\n", args...)
}

// drain lets the last output arrive, if nobody holds the pipe open.
func drain(copied <-chan struct{}, output *os.File) {
	patience := time.NewTimer(drainPatience)
	defer patience.Stop()
	select {
	case <-copied:
	case <-patience.C:
		_ = output.Close()
		<-copied
	}
}

// sinceBoot is a clock that never jumps and never stops.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
