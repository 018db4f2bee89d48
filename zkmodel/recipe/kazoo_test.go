package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// kazoo runs a script of Python's client on root at the shared server.
func kazoo(t *testing.T, root, script string) *zktest.Kazoo {
	t.Helper()
	return zktest.StartKazoo(t, zktest.Shared(t).Addr(), root, script)
}

// inLine waits until n contenders stand in line for dir.
func inLine(t *testing.T, s *recipe.Session, dir string, n int) []recipe.Contender {
	t.Helper()
	var line []recipe.Contender
	zktest.Eventually(t, func() bool {
		var err error
		line, err = recipe.Contenders(t.Context(), s, dir)
		must(t, err)
		return len(line) == n
	}, "%d contenders at %s", n, dir)
	return line
}

// TestKazooExclusion has kazoo hold the lock, and then us.
func TestKazooExclusion(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, ctx := session(t, dial(t, root)), t.Context()
	must(t, s.EnsurePath(ctx, "/r"))
	k := kazoo(t, root, `
lock = zk.Lock("/r/lock", "kazoo")
say(lock.acquire(blocking=False))
hear()
lock.release()
say("released")
hear()
say(lock.acquire(blocking=False), lock.contenders())
hear()
say(lock.acquire(timeout=20))
lock.release()
`)
	k.Expect("True")
	lock := recipe.NewLock(s, "/r/lock", "ours")
	_, err := lock.Try(ctx)
	want(t, err, recipe.ErrLocked)
	if line := inLine(t, s, "/r/lock", 1); line[0].Identifier != "kazoo" {
		t.Errorf("holder %q", line[0].Identifier)
	}
	k.Say("release")
	k.Expect("released")
	held, err := lock.Acquire(patiently(t))
	must(t, err)
	k.Say("try")
	k.Expect("False ['ours']")
	k.Say("wait")
	inLine(t, s, "/r/lock", 2)
	must(t, held.Release(ctx))
	k.Expect("True")
}

// TestKazooOrder lets kazoo's and our contenders stand in line in turn, and
// demands that they are served in that order.
func TestKazooOrder(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, ctx := session(t, dial(t, root)), t.Context()
	const each = 4
	must(t, s.EnsurePath(ctx, "/order"))
	first, err := recipe.NewLock(s, "/lock", "gate").Try(ctx)
	must(t, err)
	k := kazoo(t, root, `
import threading
def enter(name):
    lock = zk.Lock("/lock", name)
    with lock:
        zk.create("/order/" + name + "-", sequence=True)
threads = []
while True:
    name = hear()
    if name == "end": break
    threads.append(threading.Thread(target=enter, args=(name,)))
    threads[-1].start()
for thread in threads: thread.join()
say("done")
`)
	var expect []string
	done := make(chan error, each)
	for i := range each {
		for _, name := range []string{fmt.Sprintf("kazoo%d", i), fmt.Sprintf("ours%d", i)} {
			if expect = append(expect, name); strings.HasPrefix(name, "kazoo") {
				k.Say(name)
			} else {
				go func() { done <- enterAndSign(ctx, s, name) }()
			}
			inLine(t, s, "/lock", len(expect)+1)
		}
	}
	k.Say("end")
	line := inLine(t, s, "/lock", len(expect)+1)
	for i, name := range expect {
		if line[i+1].Identifier != name {
			t.Errorf("contender %d is %q, want %q", i+1, line[i+1].Identifier, name)
		}
	}
	must(t, first.Release(ctx))
	k.Expect("done")
	for range each {
		must(t, <-done)
	}
	signed, err := s.Children(ctx, "/order")
	must(t, err)
	slices.SortFunc(signed, func(a, b string) int { return strings.Compare(a[strings.Index(a, "-"):], b[strings.Index(b, "-"):]) })
	for i, name := range signed {
		if !strings.HasPrefix(name, expect[i]+"-") {
			t.Errorf("%d-th to hold the lock was %s, want %s", i, name, expect[i])
		}
	}
}

// enterAndSign leaves a sequential node while it holds the lock.
func enterAndSign(ctx context.Context, s *recipe.Session, name string) error {
	held, err := recipe.NewLock(s, "/lock", name).Acquire(ctx)
	if err != nil {
		return err
	}
	if _, err := held.Create(ctx, "/order/"+name+"-", nil, recipe.Sequential); err != nil {
		return err
	}
	return held.Release(ctx)
}

// TestKazooElection has kazoo lead first, and then us, and then kazoo again.
func TestKazooElection(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	c, ctx := dial(t, root), t.Context()
	s := session(t, c)
	k := kazoo(t, root, `
election = zk.Election("/elections/stats", "kazoo-1")
def lead():
    say("leading")
    hear()
election.run(lead)
say(election.contenders())
hear()
election.run(lead)
`)
	k.Expect("leading")
	if line, err := recipe.Contenders(ctx, s, "/elections/stats"); err != nil || len(line) == 0 || line[0].Identifier != "kazoo-1" {
		t.Errorf("in line: %v, %v", line, err)
	}
	leading, resign, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- recipe.NewElection(c, "/elections/stats", "ours-1").Run(ctx, func(context.Context, *recipe.Held) error {
			close(leading)
			<-resign
			return nil
		})
	}()
	inLine(t, s, "/elections/stats", 2)
	k.Say("resign")
	k.Expect("['ours-1']")
	<-leading
	k.Say("again")
	inLine(t, s, "/elections/stats", 2)
	close(resign)
	k.Expect("leading")
	must(t, <-ended)
	k.Say("end")
}

// TestKazooDeletionRace has kazoo delete records recursively while we try to
// lock them, and the other way round. No try of ours may bring back a record,
// and what we delete must be gone unless kazoo's lock made it anew, empty.
func TestKazooDeletionRace(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	s, ctx := session(t, dial(t, root)), t.Context()
	const rounds = 60
	for i := range rounds {
		must(t, s.EnsurePath(ctx, fmt.Sprintf("/ours/%d/kid", i)))
		must(t, s.EnsurePath(ctx, fmt.Sprintf("/theirs/%d/kid", i)))
	}
	k := kazoo(t, root, fmt.Sprintf(`
hear()
for i in range(%d):
    while zk.exists("/ours/%%d" %% i):
        try:
            zk.delete("/ours/%%d" %% i, recursive=True)
        except (NotEmptyError, NoNodeError):
            pass # our contender came in between
    lock = zk.Lock("/theirs/%%d/lock" %% i)
    try:
        if lock.acquire(blocking=False):
            while zk.exists("/theirs/%%d" %% i):
                try:
                    zk.delete("/theirs/%%d" %% i, recursive=True)
                except NotEmptyError:
                    pass # our contender came in between
    except NoNodeError:
        pass
say("done")
`, rounds))
	k.Say("go")
	for i := range rounds {
		for _, dir := range []string{"/ours", "/theirs"} {
			record := fmt.Sprintf("%s/%d", dir, i)
			held, err := recipe.NewLock(s, record+"/lock", "").Try(ctx)
			switch {
			case errors.Is(err, recipe.ErrLocked) || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrFenceLost):
				continue
			case err != nil:
				t.Fatal(err)
			}
			if dir == "/theirs" {
				if err := held.DeleteTree(ctx, record); err != nil && !errors.Is(err, recipe.ErrFenceLost) {
					t.Fatal(err)
				}
			}
			must(t, held.Release(ctx))
		}
	}
	k.Expect("done")
	for i := range rounds {
		if _, exists, err := s.Exists(ctx, fmt.Sprintf("/ours/%d", i)); err != nil || exists {
			t.Errorf("record %d came back: %v", i, err)
		}
		names, err := s.Children(ctx, fmt.Sprintf("/theirs/%d", i))
		if err == nil && slices.Contains(names, "kid") {
			t.Errorf("record %d is half deleted: %v", i, names)
		}
	}
}
