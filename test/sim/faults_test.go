package sim

import (
	"context"
	"fmt"
	"net"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
)

// fault makes the next thing go wrong, or ends something that does.
func (w *world) fault() {
	a := w.agents[w.rng.IntN(len(w.agents))]
	server := 1 + w.rng.IntN(servers)
	d := time.Duration(w.rng.Int64N(int64(2 * sessionTimeout)))
	switch w.rng.IntN(16) {
	case 0:
		w.made("cut", a.name, "for %s", d)
		w.cluster.Cut(a.name)
		w.later(d, func() { w.cluster.Heal(a.name) })
	case 1:
		w.made("cut up", a.name, "for %s", d)
		w.cluster.CutUp(a.name)
		w.later(d, func() { w.cluster.Heal(a.name) })
	case 2:
		w.made("cut down", a.name, "for %s", d)
		w.cluster.CutDown(a.name)
		w.later(d, func() { w.cluster.Heal(a.name) })
	case 3, 4:
		w.made("pause", a.name, "for %s", d)
		w.pause(a, d)
	case 5:
		w.made("break", a.name, "")
		w.cluster.Break(a.name)
	case 6:
		w.made("slow", a.name, "by %s", d/10)
		w.cluster.Slow(a.name, d/10)
	case 7:
		w.made("lost answer", a.name, "")
		w.cluster.DropAnswer(a.name)
	case 8:
		w.made("expire", a.name, "")
		w.judge.excuse(a.name)
		w.cluster.Expire(a.name)
	case 9:
		w.made("lag", fmt.Sprint("server ", server), "by %s", d/4)
		w.cluster.Lag(server, d/4)
	case 10:
		w.made("leader change", "servers", "")
		w.cluster.LeaderChange()
	case 11:
		w.without("isolate", server, d, w.cluster.Isolate, w.cluster.Join)
	case 12:
		w.without("kill", server, d, w.cluster.Kill, w.cluster.Start)
	case 13:
		w.crash(a)
	case 14:
		w.evict()
	case 15:
		w.made("rest", "servers", "")
		w.wait(sessionTimeout)
	}
}

func (w *world) made(fault, who, format string, args ...any) {
	w.faults[fault]++
	w.judge.note(who, "FAULT "+fault+" "+format, args...)
}

// later ends a fault; the world is not over before.
func (w *world) later(d time.Duration, f func()) { time.AfterFunc(d, f) }

// pause stops an agent's process: neither its timers nor its packets move.
func (w *world) pause(a *agent, d time.Duration) {
	a.host.pause()
	w.cluster.Cut(a.name)
	w.later(d, func() {
		w.judge.note(a.name, "goes on")
		a.host.resume()
		w.cluster.Heal(a.name)
	})
}

// A majority of servers is always left, so that work goes on, most of the time.
func (w *world) without(fault string, server int, d time.Duration, begin, end func(server int)) {
	if len(w.away) > 0 {
		return
	}
	w.made(fault, fmt.Sprint("server ", server), "for %s", d)
	w.away[server] = true
	begin(server)
	w.wait(d)
	end(server)
	delete(w.away, server)
}

// crash ends an agent: nothing that it does from now on reaches anybody. Another takes its place.
func (w *world) crash(a *agent) {
	w.made("crash", a.name, "")
	w.cluster.Break(a.name)
	w.cluster.Cut(a.name)
	a.host.resume()
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
	w.judge.mu.Lock()
	dir := lockOf(recordAt(w.rng.IntN(recordCount)))
	line := w.judge.stand[dir]
	if len(line) == 0 {
		w.judge.mu.Unlock()
		return
	}
	victim := line[w.rng.IntN(len(line))]
	w.judge.excused[fmt.Sprint(victim.session, dir)] = true
	w.judge.mu.Unlock()
	w.made("evict", victim.client, "%s from %s", number(victim.name), dir)
	w.cluster.Slow(victim.client, time.Duration(w.rng.Int64N(int64(3*time.Second))))
	w.wait(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
	conn := w.operator()
	defer conn.Close()
	_ = conn.Delete(path.Join(dir, victim.name), -1) // it may have gone
	w.wait(time.Duration(w.rng.Int64N(int64(3 * time.Second))))
	w.cluster.Slow(victim.client, 0)
	w.cluster.Break(victim.client)
}

// heal ends all faults.
func (w *world) heal() {
	w.wait(2 * sessionTimeout) // what ends later has ended by then
	for _, a := range w.agents {
		w.cluster.Heal(a.name)
	}
	for server := range servers {
		w.cluster.Lag(server+1, 0)
	}
	w.judge.note("world", "has no more faults")
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
