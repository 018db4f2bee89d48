package sim

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/sim/stage"
)

// fault makes the next thing go wrong, or ends something that does.
func (w *world) fault() {
	a := w.agents[w.rng.IntN(len(w.agents))]
	own := map[string]func(*agent){"expire": w.expire, "crash": w.crash, "evict": func(*agent) { w.evict() }, "rest": func(*agent) { w.rest() }}
	all := append(slices.Sorted(maps.Keys(own)), stage.Faults()...)
	all = append(all, "pause")
	fault := all[w.rng.IntN(len(all))]
	before := w.judge.Counts()[fault]
	now := w.judge.now()
	if !slices.Contains(toServers, fault) {
		now = w.judge.now(a.name)
	}
	if make, is := own[fault]; is {
		make(a)
	} else {
		w.network.Fault(fault, a.host)
	}
	if fault != "evict" && fault != "rest" && w.judge.Counts()[fault] > before { // it was made
		w.judge.met(fault, now)
	}
}

// met counts what agents did as a fault met them.
func (j *judge) met(fault string, now map[standing]bool) {
	for what := range now {
		j.Count(fault + " " + what.String())
	}
}

func (w *world) expire(a *agent) {
	w.judge.Fault("expire", a.name, "")
	w.judge.excuse(a.name)
	w.cluster.Expire(a.name)
}

func (w *world) rest() {
	w.judge.Fault("rest", "servers", "")
	w.wait(sessionTimeout)
}

// crash ends an agent: nothing that it does from now on reaches anybody. Another takes its place.
func (w *world) crash(a *agent) {
	w.judge.Fault("crash", a.name, "")
	w.cluster.Break(a.name)
	w.cluster.Cut(a.name)
	a.host.Resume()
	a.stop()
	for i, one := range w.agents {
		if one == a {
			w.agents[i] = w.start(fmt.Sprintf("a%d.%d", i+1, w.started))
		}
	}
}

// evict has an operator delete a contender, as people do when they believe a lock to be left
// over: because its owner is slow to act, and then loses its connection.
func (w *world) evict() {
	draw := w.rng.Uint32()
	var pauses [3]time.Duration
	for i := range pauses {
		pauses[i] = time.Duration(w.rng.Int64N(int64(3 * time.Second)))
	}
	dir, victim := w.judge.evicted(draw)
	if dir == "" {
		return
	}
	w.judge.Fault("evict", victim.client, "%s from %s", number(victim.name), dir)
	w.judge.met("evict", w.judge.now(victim.client))
	w.others.Go(func() {
		w.cluster.Slow(victim.client, pauses[0])
		w.wait(pauses[1])
		conn := w.operator()
		defer conn.Close()
		_ = conn.Delete(path.Join(dir, victim.name), -1) // it may have gone
		w.wait(pauses[2])
		w.cluster.Slow(victim.client, 0)
		w.cluster.Break(victim.client)
	})
}

// operator is a client that no fault meets.
func (w *world) operator() *zk.Conn {
	w.t.Helper()
	conn, done, err := zk.Connect(w.cluster.Addrs(), sessionTimeout, zk.WithLogger(silent{}), zk.WithLogInfo(false),
		zk.WithDialer(func(network, addr string, wait time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			return w.cluster.Dialer("operator")(ctx, network, addr)
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		for range done {
		}
	})
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}
