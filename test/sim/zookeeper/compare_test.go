package zookeeper_test

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/test/zktest"
)

// leadUp is how many lines before a difference are shown.
const leadUp = 40

var seeds = flag.Uint("sim.seeds", 3, "programs that are played on a real ZooKeeper and on the model")

// first is the seed of the first program; POOLKEEPER_SIM_SEED tries others.
func first(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("POOLKEEPER_SIM_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Mistakes: an answer, an error, an event, a transaction number or a stat that is not what
// ZooKeeper gives: the same programs are played on both, one step after the other.
func TestModelAnswersAsZooKeeper(t *testing.T) {
	const steps = 400
	real := zktest.Start(t, zktest.WithConfig("maxSessionTimeout=60000"))
	seed := first(t)
	programs := [][]step{rare()}
	for i := range uint64(*seeds) {
		programs = append(programs, program(seed+i, steps))
	}
	want := play(t, real.Addr(), net.Dial, programs)
	var got []string
	synctest.Test(t, func(t *testing.T) {
		model := zookeeper.New(zookeeper.Options{Seed: seed, Tick: 100 * time.Millisecond, MaxTimeout: time.Minute, Delay: 10 * time.Microsecond})
		defer model.Close()
		got = play(t, model.Addrs()[0], func(network, address string) (net.Conn, error) {
			return model.Dial(t.Context(), network, address)
		}, programs)
	})
	compare(t, want, got)
	t.Logf("%d programs from seed %d, %d lines equal", *seeds, seed, len(want))
}

// compare shows the first difference, with what led to it.
func compare(t *testing.T, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		w, g := at(want, i), at(got, i)
		if w == g {
			continue
		}
		t.Fatalf("line %d differs; before it:\n%s\nZooKeeper: %s\nmodel:     %s", i, strings.Join(want[max(0, i-leadUp):i], "\n"), w, g)
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return fmt.Sprintf("nothing (%d lines)", len(list))
}

// Mistakes: a session of which nothing is heard lives on, or ends too early; what goes with
// it, who is told of that, and what its client meets when it comes back.
func TestModelExpiresAsZooKeeper(t *testing.T) {
	real := zktest.Start(t)
	want := expire(t, real.Addr(), net.Dial)
	var got []string
	synctest.Test(t, func(t *testing.T) {
		model := zookeeper.New(zookeeper.Options{Tick: 100 * time.Millisecond})
		defer model.Close()
		got = expire(t, model.Addrs()[0], func(network, address string) (net.Conn, error) {
			return model.Dial(t.Context(), network, address)
		})
	})
	compare(t, want, got)
}

// expire has a client away for longer than its session lasts.
func expire(t *testing.T, addr string, dial func(network, address string) (net.Conn, error)) []string {
	t.Helper()
	r := &run{t: t, owners: map[int64]string{}}
	for name, wait := range map[string]time.Duration{"short": 500 * time.Millisecond, "long": 30 * time.Second} {
		r.join(&player{t: t, addr: addr, dial: dial, name: name, wait: wait})
	}
	slices.SortFunc(r.players, func(a, b *player) int { return cmp.Compare(a.wait, b.wait) })
	short, long := r.players[0], r.players[1]
	ids := []int64{short.conn.SessionID()}
	for _, s := range []step{
		{what: "create", path: "/a"},
		{what: "create", path: "/a/e", flags: zk.FlagEphemeral},
		{what: "create", path: "/a/s-", flags: zk.FlagEphemeralSequential},
		{what: "children", path: "/a", watch: true},
		{client: 1, what: "children", path: "/a", watch: true},
		{client: 1, what: "get", path: "/a/e", watch: true},
		{client: 1, what: "exists", path: "/a/e", watch: true},
		{what: "leave"},
	} {
		s.acl, s.version = zk.WorldACL(zk.PermAll), -1
		r.do("", "", s)
	}
	left := time.Now()
	long.await("the end of a session", func() bool { there, _, err := long.conn.Exists("/a/e"); return err == nil && !there })
	gone := time.Since(left)
	r.lines = append(r.lines, fmt.Sprintf("in time: %t", gone > 300*time.Millisecond && gone < 10*time.Second))
	long.mu.Lock()
	slices.Sort(long.events) // a server ends what a session had in any order
	r.lines = append(r.lines, strings.Join(long.events, ", "))
	long.heads = nil
	long.mu.Unlock()
	short.watches = nil // the library ends them
	r.comeBack(short)
	short.await("another session", func() bool { return short.conn.State() == zk.StateHasSession && short.conn.SessionID() != ids[0] })
	r.owners[short.conn.SessionID()] = "short again"
	for _, s := range []step{
		{what: "get", path: "/a"},
		{what: "create", path: "/a/s-", flags: zk.FlagEphemeralSequential},
		{what: "get", path: "/a/s-0000000002"},
	} {
		s.acl, s.version = zk.WorldACL(zk.PermAll), -1
		r.lines = append(r.lines, r.ask(short, "", s))
	}
	short.end()
	long.end()
	return r.lines
}
