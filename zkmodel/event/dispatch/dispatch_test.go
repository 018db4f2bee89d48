package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a process with a part in events.
type daemon struct {
	*dispatch.Service
	client *recipe.Client
	store  *zkmodel.Store
	stop   func()
}

func start(t *testing.T, root, name string, options *dispatch.Options, change ...func(*dispatch.Deps)) *daemon {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root, Timeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deps := dispatch.Deps{
		Client: client, Writer: "/poolkeeper/" + name, Member: name, Logger: hclog.New(&hclog.LoggerOptions{Output: t.Output()}), TrimEvery: 50 * time.Millisecond,
	}
	for _, c := range change {
		c(&deps)
	}
	d := &daemon{Service: dispatch.New(deps), client: client, store: zkmodel.NewStore(session, nil)}
	d.Set(options)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { d.Run(ctx) })
	d.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		client.Close()
	})
	t.Cleanup(d.stop)
	return d
}

// tell writes some events.
func (d *daemon) tell(t *testing.T, count int) {
	t.Helper()
	for n := range count {
		if err := d.store.Tell(t.Context(), event.ProviderDown, fmt.Sprintf("provider/p%d", n%3), event.Data{"n": n + 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// left is how many events the log has.
func (d *daemon) left(t *testing.T) int {
	t.Helper()
	reader := recipe.NewLog(event.Root, "").Read(d.store.Session(), recipe.LogPosition{})
	for n := 0; ; {
		e, ok, err := reader.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return n
		}
		if e.Gap == nil {
			n++
		}
	}
}

// told fails the test unless the daemon's metrics tell of a dispatcher, or do not.
func (d *daemon) told(t *testing.T, is bool) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(d.Service)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := false
	for _, family := range families {
		there = there || family.GetName() == "poolkeeper_events_dispatcher"
	}
	if there != is {
		t.Errorf("%d metrics; of a dispatcher: %t, want %t", len(families), there, is)
	}
}

// Mistakes: a log that grows without bound, when the daemon that kept it is gone, too; two
// that keep it; options that take effect only at the next start; a daemon without
// options that takes part, or tells that there is no dispatcher, for which an alarm rings.
func TestTheLogIsKeptByOneOfAll(t *testing.T) {
	root := zktest.Root(t)
	options := &dispatch.Options{Keep: 100, Age: time.Hour}
	none := start(t, root, "none", nil)
	if _, there, err := none.store.Session().Exists(t.Context(), "/poolkeeper"); there || err != nil {
		t.Fatalf("there is /poolkeeper: %v", err)
	}
	shares := zkmodel.NewProcess(nil)
	named := func(n int) {
		t.Helper()
		zktest.Eventually(t, func() bool { return len(shares.Held()) == n }, "the launcher names %d shares", n)
	}
	inLine := func(n int, what string) {
		t.Helper()
		zktest.Eventually(t, func() bool {
			line, err := recipe.Contenders(t.Context(), none.store.Session(), dispatch.ElectionPath)
			return err == nil && len(line) == n
		}, "%s", what)
	}
	builder := start(t, root, "builder", options)
	inLine(1, "the builder is the first in line")
	launcher := start(t, root, "launcher", options, func(d *dispatch.Deps) { d.Hold = shares.Hold })
	builder.tell(t, 150)
	named(0)
	none.told(t, false)
	launcher.told(t, true)
	zktest.Eventually(t, func() bool { return launcher.left(t) == 100 }, "the log is trimmed")
	builder.stop()
	launcher.tell(t, 70)
	named(1)
	zktest.Eventually(t, func() bool { return launcher.left(t) == 100 }, "the other one trims it")
	launcher.Set(&dispatch.Options{Keep: 100, Age: time.Nanosecond})
	zktest.Eventually(t, func() bool { return launcher.left(t) == 0 }, "all are too old now")
	launcher.Set(nil)
	named(0)
	launcher.tell(t, 3)
	if n := none.left(t); n != 0 {
		t.Errorf("%d events of a site that has none", n)
	}
	inLine(0, "nobody stands for election any more")
	launcher.told(t, false)
}

// Mistakes: a program that leaves something in the background and is called for ever; a file
// that cannot be synced, and gets all again; a pipe that nobody reads and that holds up other
// sinks, the next leadership or the daemon's end.
func TestOddSinksHoldUpNothing(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	pipe, unread := filepath.Join(dir, "pipe"), filepath.Join(dir, "unread")
	for _, path := range []string{pipe, unread} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // a test's
	pager := script(t, dir, `echo "$EVENT_ID" >>"`+dir+`/pages"; sleep 100 & echo $! >>"`+dir+`/left"; exit 0`)
	t.Cleanup(func() {
		left, _ := os.ReadFile(filepath.Join(dir, "left"))
		for line := range strings.Lines(string(left)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	d := start(t, root, "builder", nil, quick)
	d.Set(options(
		dispatch.Sink{Name: "pager", Command: pager}, dispatch.Sink{Name: "pipe", File: pipe}, dispatch.Sink{Name: "unread", File: unread},
		dispatch.Sink{Name: "file", File: filepath.Join(dir, "events")},
	))
	d.tell(t, 3)
	log := recipe.NewLog(event.Root, "")
	for _, name := range []string{"pager", "pipe", "file"} {
		zktest.Eventually(t, func() bool {
			at, _, err := log.Cursor(t.Context(), d.store.Session(), name)
			return err == nil && at.Number == 3
		}, "%s has all", name)
	}
	if pages, err := os.ReadFile(filepath.Join(dir, "pages")); err != nil || strings.Count(string(pages), "\n") != 3 {
		t.Errorf("pages %q: %v", pages, err)
	}
	d.Set(options(dispatch.Sink{Name: "file", File: filepath.Join(dir, "events")}))
	d.tell(t, 1)
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, "events"))) == 4 }, "the other sink goes on")
	d.stop()
}
