package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// eventTown is two builders and two launchers, each a process, over three ZooKeeper servers,
// with two sinks.
type eventTown struct {
	*testing.T
	dir      string
	ensemble *zktest.Ensemble
	client   *recipe.Client
	daemons  map[string]*exec.Cmd

	mu      sync.Mutex
	hooked  []event.Event
	forged  int
	changes atomic.Int64 // that were acknowledged
}

const townKey = "0123456789abcdef0123"

func newEventTown(t *testing.T) *eventTown {
	t.Helper()
	s := &eventTown{T: t, dir: t.TempDir(), ensemble: zktest.StartEnsemble(t, 3), daemons: map[string]*exec.Cmd{}}
	hook := httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(hook.Close)
	var servers, images []string
	for _, addr := range s.ensemble.Addrs() {
		host, port, _ := strings.Cut(addr, ":")
		servers = append(servers, fmt.Sprintf("{host: %s, port: %s, chroot: /town}", host, port))
	}
	for _, image := range []string{"a", "b", "c"} {
		images = append(images, fmt.Sprintf("{name: %s, formats: [raw], dib-cmd: /bin/false}", image))
	}
	s.write("nodepool.yaml", fmt.Sprintf(`zookeeper-servers: [%s]
zookeeper-timeout: 2
images-dir: %s/%%(NODEPOOL_ME)
build-log-dir: %s/%%(NODEPOOL_ME)-logs
build-disk-reserve: 0
diskimages: [%s]
events:
  sinks:
    - {name: hook, webhook: %q}
    - {name: file, file: %s/events}
`, strings.Join(servers, ", "), s.dir, s.dir, strings.Join(images, ", "), hook.URL, s.dir))
	s.write("secure.yaml", "events: {sinks: [{name: hook, key: "+townKey+"}]}\n")
	var err error
	if s.client, err = recipe.Dial(recipe.Config{Servers: s.ensemble.Addrs(), Chroot: "/town", Timeout: 4 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/operator/ann"))
	t.Cleanup(func() {
		for _, cmd := range s.daemons {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return s
}

func (s *eventTown) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// take is the webhook.
func (s *eventTown) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // a daemon was killed meanwhile
	}
	var e event.Event
	s.mu.Lock()
	defer s.mu.Unlock()
	if json.Unmarshal(body, &e) != nil || r.Header.Get(dispatch.SignatureHeader) != dispatch.Sign(townKey, body) {
		s.forged++
		return
	}
	s.hooked = append(s.hooked, e)
}

// start starts a daemon, "builder-1".
func (s *eventTown) start(name string) {
	s.Helper()
	kind, _, _ := strings.Cut(name, "-")
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	for _, dir := range []string{name, name + "-logs"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			s.Fatal(err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.Context()), os.Args[0]) //nolint:gosec // this very program, as testscript.Main makes it
	cmd.Args = []string{"poolkeeper", "-c", "nodepool.yaml", "-s", "secure.yaml", kind, "--no-webapp"}
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "NODEPOOL_ME="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.daemons[name] = cmd
}

// kill kills a daemon.
func (s *eventTown) kill(name string) {
	s.Helper()
	if err := s.daemons[name].Process.Kill(); err != nil {
		s.Fatal(err)
	}
	_ = s.daemons[name].Wait()
}

// busy pauses and unpauses images, as a person would, until ctx ends. What ZooKeeper does
// not answer is not counted: it may have happened.
func (s *eventTown) busy(ctx context.Context) {
	for n := 0; clock.Sleep(ctx, 5*time.Millisecond) == nil; n++ {
		session, err := s.client.Session(ctx)
		if err != nil {
			continue
		}
		store, image := zkmodel.NewStore(session, nil), []string{"a", "b", "c"}[n%3]
		trying, cancel := context.WithTimeout(ctx, 5*time.Second)
		if paused, err := store.ImagePaused(trying, image); err == nil {
			change := store.PauseImage
			if paused {
				change = store.UnpauseImage
			}
			if change(trying, image) == nil {
				s.changes.Add(1)
			}
		}
		cancel()
	}
}

// logged are the ids of all events that the log has.
func (s *eventTown) logged() (ids []string, kinds map[string]int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	kinds = map[string]int{}
	session, err := s.client.Session(ctx)
	if err == nil {
		err = session.Sync(ctx)
	}
	if err != nil {
		s.Fatal(err)
	}
	reader := recipe.NewLog(event.Root, "").Read(session, recipe.LogPosition{})
	for {
		entry, ok, err := reader.Poll(ctx)
		if err != nil {
			s.Fatal(err)
		}
		if !ok {
			return ids, kinds
		}
		e, err := event.Of(entry)
		if err != nil {
			s.Fatal(err)
		}
		if e.Observed && e.Subject != "image/theirs" {
			s.Errorf("%s of %s, which ours did, is told as others'", e.Type, e.Subject)
		}
		ids = append(ids, e.ID)
		kinds[e.Type]++
	}
}

// first are the ids of events, each where it came first.
func first(list []event.Event) (ids []string) {
	seen := map[string]bool{}
	for _, e := range list {
		if !seen[e.ID] {
			seen[e.ID], ids = true, append(ids, e.ID)
		}
	}
	return ids
}

// sinks are the ids that each sink has, in the order in which they came first.
func (s *eventTown) sinks() map[string][]string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "events"))
	if err != nil {
		return nil
	}
	var filed []event.Event
	for line := range strings.Lines(string(text)) {
		var e event.Event
		if json.Unmarshal([]byte(line), &e) == nil { // else half a line of one that was killed, which comes again
			filed = append(filed, e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string][]string{"file": first(filed), "hook": first(s.hooked)}
}

// theirs makes a znode as others do.
func (s *eventTown) theirs(path string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	session, err := s.client.Session(ctx)
	if err == nil {
		err = session.EnsurePath(ctx, path)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// Mistakes: an event that is lost, or comes out of order, when the daemon that dispatches
// them, the builder that makes them or the ZooKeeper server that leads is killed; a change
// without its event, or of ours that is taken for another's; one of others that is not told.
func TestEventsOverDeathsOfAll(t *testing.T) {
	t.Parallel()
	s := newEventTown(t)
	names := []string{"builder-1", "launcher-1", "builder-2", "launcher-2"}
	for _, name := range names {
		s.start(name)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { s.busy(ctx) })
	defer work.Wait()
	defer stop()
	grows := func(why string) {
		t.Helper()
		before := len(s.sinks()["hook"])
		zktest.Eventually(t, func() bool { return len(s.sinks()["hook"]) > before+5 }, "events go on coming after %s", why)
	}
	grows("the start")
	for i, name := range names { // one of them dispatches, and after it the next
		s.kill(name)
		if i == 1 {
			leader := s.ensemble.Leader(t)
			s.ensemble.Kill(leader)
			s.ensemble.Restart(t, leader)
		}
		grows(name + " was killed")
		s.start(name)
	}
	stop()
	work.Wait()
	s.theirs(zkmodel.PausePath("theirs"))
	zktest.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.hooked, func(e event.Event) bool { return e.Observed && e.Type == event.ImagePaused })
	}, "what others do is told")
	want, kinds := s.logged()
	if kinds[event.ImagePaused]+kinds[event.ImageUnpaused] < int(s.changes.Load()) || kinds[event.BuildBegan] == 0 || kinds[event.Gap] > 0 {
		t.Errorf("%d changes by a person, told are %v", s.changes.Load(), kinds)
	}
	zktest.Eventually(t, func() bool {
		sinks := s.sinks()
		return len(sinks["file"]) >= len(want) && len(sinks["hook"]) >= len(want)
	}, "all %d events came to both sinks", len(want))
	for name, got := range s.sinks() {
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s has lost events, or has them in another order:\n%v\nwant\n%v", name, got, want)
		}
	}
	if s.forged > 0 {
		t.Errorf("%d requests were not signed", s.forged)
	}
	t.Logf("%d events, %v", len(want), kinds)
}
