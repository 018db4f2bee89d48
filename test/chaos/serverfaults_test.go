package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

// serverFaults are what happens to ZooKeeper's servers: never to a second one before the
// first is well, but to all at once.
func serverFaults(w *world) []fault {
	list := []fault{
		{"leader killed", func(ctx context.Context, r *rand.Rand) string {
			defer w.faults.unled()()
			return w.killServers(ctx, r, w.ensemble.Leader(w.t)) //nolint:contextcheck // a test helper
		}},
		{"follower killed", func(ctx context.Context, r *rand.Rand) string {
			return w.killServers(ctx, r, (w.ensemble.Leader(w.t)+1+r.IntN(2))%servers) //nolint:contextcheck // a test helper
		}},
		{"all servers killed", func(ctx context.Context, r *rand.Rand) string {
			defer w.faults.unled()()
			return w.killServers(ctx, r, 0, 1, 2)
		}},
		{"leader frozen", func(ctx context.Context, r *rand.Rand) string {
			i := w.ensemble.Leader(w.t) //nolint:contextcheck // a test helper
			d := time.Second + time.Duration(r.Int64N(int64(4*time.Second)))
			defer w.faults.unled()()
			w.ensemble.Servers[i].Pause()
			wait(ctx, d)
			w.ensemble.Servers[i].Resume()
			w.ensemble.Await(w.t) //nolint:contextcheck // a test helper
			return serverName(i)
		}},
		{wentBack, w.goBack},
	}
	if _, able := w.net.(*namespaces); able { // servers reach each other without a proxy
		list = append(list, fault{"leader cut off", func(ctx context.Context, r *rand.Rand) string {
			i := w.ensemble.Leader(w.t) //nolint:contextcheck // a test helper
			d := time.Second + time.Duration(r.Int64N(int64(4*time.Second)))
			defer w.faults.unled()()
			w.net.cut(serverName(i))
			wait(ctx, d)
			w.net.heal(serverName(i))
			w.ensemble.Await(w.t) //nolint:contextcheck // a test helper
			return serverName(i)
		}})
	}
	return list
}

// killServers kills servers, and starts them again.
func (w *world) killServers(ctx context.Context, r *rand.Rand, which ...int) string {
	d := time.Duration(r.Int64N(int64(2 * time.Second)))
	var names []string
	for _, i := range which {
		w.ensemble.Kill(i)
		names = append(names, serverName(i))
	}
	wait(ctx, d)
	w.ensemble.Restart(w.t, which...) //nolint:contextcheck // a test helper
	return strings.Join(names, " ")
}

// saved is a copy of the tree.
type saved struct {
	at   time.Time
	file string
}

// save copies the tree, as a backup of a server's folder does, while that serves.
func (w *world) save(number int) saved {
	s := saved{time.Now(), filepath.Join(w.path("saved"), fmt.Sprint(number))}
	if err := copyFolder(w.ensemble.Servers[w.ensemble.Leader(w.t)].Data(), s.file); err != nil {
		w.t.Error(err)
	}
	w.faults.note("servers", fmt.Sprintf("the tree is saved as %d", number))
	return s
}

// goBack gives all servers the tree that was saved before the last time, and saves the one
// that there is for the next.
func (w *world) goBack(ctx context.Context, _ *rand.Rand) string {
	if time.Since(w.last.at) < leastAge {
		return ""
	}
	old := w.last
	w.last = w.save(w.number) //nolint:contextcheck // a test helper
	w.number++
	led := w.faults.unled()
	w.faults.wentBack(true)
	var all []int
	for i := range servers {
		w.ensemble.Kill(i)
		all = append(all, i)
	}
	// Nobody who was there is taken for still being there.
	wait(context.WithoutCancel(ctx), sessionTimeout+time.Second)
	for i := range servers {
		if err := copyFolder(old.file, w.ensemble.Servers[i].Data()); err != nil {
			w.t.Error(err)
		}
	}
	w.ensemble.Restart(w.t, all...) //nolint:contextcheck // a test helper
	w.faults.wentBack(false)
	led()
	w.mendGarbled(ctx)
	return fmt.Sprintf("by %s", time.Since(old.at).Round(time.Second))
}

// wentBack is the kind of fault that goBack is.
const wentBack = "tree went back"

// goBackAfter is when the tree goes back for the nth time: twice, or once in five minutes, each
// time early in its part of the run, as some rules are only held again a while after that.
func goBackAfter(nth int) time.Duration {
	parts := max(2, int(*length/(5*time.Minute)))
	part := *length / time.Duration(parts)
	if nth >= parts {
		return 1 << 62 // not again
	}
	return part*time.Duration(nth) + time.Duration(draw(lanes+1+requestors+nth).Int64N(int64(part/3)))
}

// mendGarbled mends the records that were garbled when the tree was saved.
func (w *world) mendGarbled(ctx context.Context) {
	w.garbled.Range(func(at, data any) bool {
		w.mend(ctx, at.(string), data.([]byte)) //nolint:forcetypeassert // nothing else is in it
		return true
	})
}

// leastAge is how old a snapshot is at least.
const leastAge = 10 * time.Second
