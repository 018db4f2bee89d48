package recipe_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// logChildEnv holds "<writer> <servers>" in a process that writes a record and a log until
// it is killed or its standard input ends.
const logChildEnv = "RECIPE_TEST_LOG_CHILD"

func logChildMain() bool {
	var writer int
	var servers string
	if n, _ := fmt.Sscan(os.Getenv(logChildEnv), &writer, &servers); n != 2 {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := recipe.Dial(recipe.Config{Servers: strings.Split(servers, ","), Chroot: "/root", Timeout: short})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	defer c.Close()
	log := recipe.NewLog("/events", "")
	_ = c.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		for ctx.Err() == nil {
			_ = countOn(ctx, log, s, writer) // what became of it is read again
			wait(ctx, 2*time.Millisecond)
		}
		return context.Cause(ctx)
	})
	return true
}

// countOn writes the next version of a writer's record, and the entry that tells of it.
func countOn(ctx context.Context, log *recipe.Log, s *recipe.Session, writer int) error {
	path := fmt.Sprintf("/record-%d", writer)
	if err := s.EnsurePath(ctx, path); err != nil {
		return err
	}
	_, stat, err := s.Get(ctx, path)
	if err != nil {
		return err
	}
	return put(ctx, log, s, fmt.Sprintf("%d %d", writer, stat.Version+1), recipe.OpSet(path, nil, stat.Version))
}

// startWriters starts processes and returns what kills one of them and starts another in
// its place, and what kills all.
func startWriters(t *testing.T, count int, servers string) (replace func(i int), stop func()) {
	t.Helper()
	running := make([]*exec.Cmd, count)
	start := func(i int) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), logChildEnv+"="+strconv.Itoa(i)+" "+servers)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		must(t, err)
		must(t, cmd.Start())
		running[i] = cmd
		t.Cleanup(func() { _ = stdin.Close() })
	}
	end := func(i int) {
		_ = running[i].Process.Kill()
		_ = running[i].Wait()
	}
	for i := range count {
		start(i)
	}
	stop = func() {
		for i := range count {
			end(i)
		}
	}
	t.Cleanup(stop)
	return func(i int) {
		end(i)
		start(i)
	}, stop
}

// Mistakes: a change without its entry, an entry without its change, or one that is doubled
// or out of order, when processes and servers are killed at any moment; a reader that
// loses its place with its session or its server.
func TestLogOverDeaths(t *testing.T) {
	t.Parallel()
	const writers = 4
	e := zktest.StartEnsemble(t, 3)
	addrs := e.Addrs()
	replace, stop := startWriters(t, writers, strings.Join(addrs, ","))
	client := dial(t, "/root", through(addrs...))
	log := recipe.NewLog("/events", "")
	next, at := map[string]int{}, recipe.LogPosition{}
	count := func(entry recipe.LogEntry) {
		who, text, _ := strings.Cut(string(entry.Data), " ")
		n, _ := strconv.Atoi(text)
		if entry.Gap != nil || entry.Number != at.Number+1 || n != next[who]+1 {
			t.Fatalf("after %v and version %d of record %s: %+v %q", at, next[who], who, entry, entry.Data)
		}
		next[who], at = n, entry.LogPosition
	}
	read := func(until int64) {
		for ctx := patiently(t); at.Number < until; {
			s, err := client.Session(ctx)
			must(t, err)
			for r := log.Read(s, at); at.Number < until; {
				entry, err := r.Next(ctx)
				if err != nil {
					must(t, ctx.Err())
					break // in the next session
				}
				count(entry)
			}
		}
	}
	for round := range 6 {
		read(at.Number + 300)
		if round%3 != 2 {
			replace(rand.IntN(writers))
			continue
		}
		kill := e.Leader(t)
		e.Kill(kill)
		e.Restart(t, kill)
	}
	stop() // each may die between its change and the answer
	s := session(t, client)
	must(t, s.Sync(t.Context()))
	end, err := log.End(t.Context(), s)
	must(t, err)
	read(end.Number)
	for i := range writers {
		stat, _, err := s.Exists(t.Context(), fmt.Sprintf("/record-%d", i))
		must(t, err)
		if n := next[strconv.Itoa(i)]; n != int(stat.Version) {
			t.Errorf("record %d has version %d, the log %d", i, stat.Version, n)
		}
	}
}

// Mistakes: a writer that goes on with what it knew of the log before its session was lost;
// a reader that is cut off and misses what was written meanwhile.
func TestLogOverLostSession(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client := dial(t, root, through(proxy.Addr()), timeout(short))
	log, other := recipe.NewLog("/events", ""), recipe.NewLog("/events", "")
	first, steady := session(t, client), session(t, dial(t, root))
	must(t, put(ctx, log, first, "1"))
	reader := log.Read(first, recipe.LogPosition{})
	_, err := reader.Next(ctx)
	must(t, err)
	proxy.Cut()
	lost(t, first.Context(), recipe.ErrSessionLost)
	_, err = reader.Next(ctx)
	want(t, err, recipe.ErrSessionLost)
	for n := range recipe.SegmentSize + 1 { // its segment ends meanwhile
		must(t, put(ctx, other, steady, strconv.Itoa(n+2)))
	}
	proxy.Heal()
	second := session(t, client)
	must(t, put(ctx, log, second, "1003"))
	for n, e := range all(t, log, second, recipe.LogPosition{}) {
		if string(e.Data) != strconv.Itoa(n+1) || e.Number != int64(n+1) {
			t.Fatalf("entry %d: %+v %q", n+1, e, e.Data)
		}
	}
}

// BenchmarkLogAppend is what an entry costs in a transaction that changes a record, with
// many writers at once.
func BenchmarkLogAppend(b *testing.B) {
	for _, entries := range []int{0, 1} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			s := session(b, dial(b, zktest.Root(b)))
			must(b, s.EnsurePath(b.Context(), "/record"))
			log := recipe.NewLog("/events", "")
			data := [][]byte{make([]byte, 400)}[:entries]
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					err := log.Append(b.Context(), s, data, func(ops []recipe.Op) error {
						_, err := s.Multi(b.Context(), append([]recipe.Op{recipe.OpSet("/record", data0, recipe.AnyVersion)}, ops...)...)
						return err
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// data0 is about what a record has.
var data0 = make([]byte, 600)
