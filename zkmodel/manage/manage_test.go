package manage_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/manage"
	"poolkeeper/zkmodel/recipe"
)

// dial connects to a root with a session of our own.
func dial(t *testing.T, root string) (*recipe.Client, *recipe.Session) {
	t.Helper()
	c, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root, Timeout: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// daemon is a registered one that takes commands.
type daemon struct {
	client *recipe.Client
	done   chan string   // what it does; has room
	begin  chan struct{} // a "slow" command waits until it is closed
	after  atomic.Int32  // how often the work behind an answer was done
	listen func()        // has it take commands; called once
	stop   func()
}

func start(t *testing.T, root, kind, host, id string) *daemon {
	t.Helper()
	client, session := dial(t, root)
	d := &daemon{client: client, done: make(chan string, 100), begin: make(chan struct{})}
	verbs := map[string]manage.Verb{
		"do": func(_ context.Context, c manage.Command) (string, func(), error) {
			d.done <- c.Argument
			return host + " did " + c.Argument + " for " + c.By, func() { d.after.Add(1) }, nil
		},
		"slow": func(_ context.Context, c manage.Command) (string, func(), error) {
			d.done <- c.Argument
			<-d.begin
			return "slowly", func() { d.after.Add(1) }, nil
		},
		"refuse": func(context.Context, manage.Command) (string, func(), error) {
			return "", nil, errors.New("not today: " + strings.Repeat("x", 20_000))
		},
	}
	p := zkmodel.NewProcess(nil)
	p.ID, p.Commands = id, append(zkmodel.Strings{"later"}, slices.Sorted(maps.Keys(verbs))...)
	c := &zkmodel.Component{Hostname: host, Kind: kind, State: zkmodel.ComponentRunning}
	p.Describe(c)
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r := recipe.NewRegistration(client, zkmodel.ComponentsRoot+"/"+kind, host, data)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _ = r.Run(ctx) })
	agent := &manage.Agent{Client: client, Instance: id, Verbs: verbs, Log: hclog.NewNullLogger()}
	d.listen = func() { group.Go(func() { _ = agent.Run(ctx) }) }
	d.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		client.Close()
	})
	t.Cleanup(d.stop)
	zktest.Eventually(t, func() bool {
		list, err := zkmodel.NewStore(session, nil).Daemons(t.Context())
		return err == nil && slices.ContainsFunc(list, func(one zkmodel.Daemon) bool { return one.Instance == id })
	}, "%s is registered", host)
	return d
}

func daemons(t *testing.T, s *recipe.Session) []zkmodel.Daemon {
	t.Helper()
	list, err := zkmodel.NewStore(s, nil).Daemons(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func send(t *testing.T, s *recipe.Session, to []zkmodel.Daemon, verb, argument string, timeout time.Duration) map[string]manage.Answer {
	t.Helper()
	answers, err := manage.NewSender(s, "anna@desk").Send(t.Context(), to, manage.Command{Verb: verb, Argument: argument}, timeout)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manage.Answer{}
	for _, a := range answers {
		all[a.Daemon.Hostname] = a
	}
	return all
}

// nothingLeft fails unless all commands are gone, with what stood beside them.
func nothingLeft(t *testing.T, s *recipe.Session) {
	t.Helper()
	for _, folder := range []string{"requests", "params", "waiters", "results", "result-data"} {
		zktest.Eventually(t, func() bool {
			names, err := s.Children(t.Context(), manage.Root+"/"+folder)
			return len(names) == 0 && (err == nil || errors.Is(err, recipe.ErrNoNode))
		}, "nothing is left in %s", folder)
	}
}

// Two builders and two launchers answer, each for itself: done, refused with the reason;
// a daemon of another release is named, and so is one that leaves meanwhile and one that is
// silent, whose command nobody does later. Nothing of it stays in the tree; where no
// command was ever given, nothing is there at all. Catches: a command that one daemon does
// for another, that is done twice or after its time, an answer that is lost, litter.
func TestCommands(t *testing.T) {
	root := zktest.Root(t)
	_, s := dial(t, root)
	all := map[string]*daemon{}
	for i, host := range []string{"nb01", "nb02", "nl01", "nl02"} {
		kind := []string{zkmodel.KindBuilder, zkmodel.KindLauncher}[i/2]
		all[host] = start(t, root, kind, host, strings.Repeat(host[3:], 4)+kind)
		all[host].listen()
	}
	if _, there, err := s.Exists(t.Context(), zkmodel.OwnRoot); there || err != nil {
		t.Fatalf("there is %s: %v", zkmodel.OwnRoot, err)
	}
	old, err := s.Create(t.Context(), zkmodel.ComponentsRoot+"/launcher/old0000000009", []byte(`{"hostname": "old", "kind": "launcher", "model_api": 0, "state": "running"}`), recipe.Ephemeral)
	if err != nil {
		t.Fatal(err)
	}
	for host, a := range send(t, s, daemons(t, s), "do", "this", time.Minute) {
		switch want := host + " did this for anna@desk"; {
		case host == "old":
			if !errors.Is(a.Err, manage.ErrUnknown) {
				t.Errorf("an old daemon: %+v", a)
			}
		case a.Err != nil || !a.Done || a.Text != want:
			t.Errorf("%s: %+v", host, a)
		default:
			zktest.Eventually(t, func() bool { return all[host].after.Load() == 1 }, "%s does what comes after", host)
			if len(all[host].done) != 1 {
				t.Errorf("%s did %d commands", host, len(all[host].done))
			}
			<-all[host].done
		}
	}
	nothingLeft(t, s)
	if err := s.Delete(t.Context(), old, recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	for host, a := range send(t, s, daemons(t, s), "refuse", "", time.Minute) {
		if a.Err != nil || a.Done || !strings.HasPrefix(a.Text, "not today") || len(a.Text) > 11_000 {
			t.Errorf("%s: %d bytes, %+v", host, len(a.Text), a.Err)
		}
	}
	for host, a := range send(t, s, daemons(t, s)[:1], "later", "", time.Minute) { // its record says so, and it does not
		if a.Err != nil || a.Done || !strings.Contains(a.Text, "knows") {
			t.Errorf("%s: %+v", host, a)
		}
	}

	// One goes while it is at it; the others have answered long ago, and are waited for no longer.
	for _, host := range []string{"nb01", "nb02", "nl02"} {
		close(all[host].begin)
	}
	go func() {
		<-all["nl01"].done
		all["nl01"].client.Close() // its session ends, and it is gone
	}()
	for host, a := range send(t, s, daemons(t, s), "slow", "", 2*time.Minute) {
		if host == "nl01" && !errors.Is(a.Err, manage.ErrGone) || host != "nl01" && !a.Done {
			t.Errorf("%s: %+v", host, a)
		}
	}
	close(all["nl01"].begin)
	nothingLeft(t, s)

	// One is registered and hears nothing: its command is taken back.
	deaf := start(t, root, zkmodel.KindBuilder, "nb03", "deaf")
	list := slices.DeleteFunc(daemons(t, s), func(d zkmodel.Daemon) bool { return d.Hostname != "nb03" && d.Hostname != "nb02" })
	got := send(t, s, list, "do", "that", time.Second)
	if !errors.Is(got["nb03"].Err, manage.ErrSilent) {
		t.Errorf("a deaf daemon: %+v", got["nb03"])
	}
	nothingLeft(t, s)
	deaf.listen()
	if a := send(t, s, list, "do", "more", time.Minute)["nb03"]; !a.Done {
		t.Errorf("it hears again: %+v", a)
	}
	if got := <-deaf.done; got != "more" {
		t.Errorf("it did %q first, which was taken back", got)
	}

	// It has begun when the time is over: that is said, and what comes after its answer is done.
	done := deaf.after.Load()
	if got := send(t, s, list, "slow", "late", time.Second); !errors.Is(got["nb03"].Err, manage.ErrBegun) || !got["nb02"].Done {
		t.Errorf("one that has begun: %+v", got)
	}
	close(deaf.begin)
	zktest.Eventually(t, func() bool { return deaf.after.Load() == done+1 }, "it ends what it has begun")
	nothingLeft(t, s)
}

// An operator's command that is killed before the daemon has begun is not done; what is left
// of it goes. One whose daemon was killed at it is not done by another. Catches: a pause an
// hour after it was asked for; commands that pile up.
func TestCommandsOfTheDead(t *testing.T) {
	root := zktest.Root(t)
	_, s := dial(t, root)
	one, two := start(t, root, zkmodel.KindBuilder, "nb01", "one"), start(t, root, zkmodel.KindBuilder, "nb02", "two")
	two.listen()
	client, dying := dial(t, root)
	died := make(chan struct{})
	go func() {
		defer close(died)
		_, _ = manage.NewSender(dying, "ann").Send(context.WithoutCancel(t.Context()), daemons(t, s), manage.Command{Verb: "slow", Argument: "x"}, time.Minute)
	}()
	<-two.done // at it, for whom nobody waits soon
	zktest.Eventually(t, func() bool {
		names, err := s.Children(t.Context(), manage.Root+"/requests")
		return err == nil && len(names) == 2
	}, "both commands are given")
	client.Close()
	<-died
	one.listen()
	close(two.begin)
	nothingLeft(t, s)
	if len(one.done) > 0 {
		t.Errorf("done for nobody: %q", <-one.done)
	}
	two.stop()
	for host, a := range send(t, s, daemons(t, s), "do", "y", time.Minute) {
		if !a.Done {
			t.Errorf("%s: %+v", host, a)
		}
	}
	nothingLeft(t, s)
}

// A daemon that SIGSTOP has stopped continues while the session of a killed sender is still open:
// it does not do the command. A sender of an older release, which confirms nothing, and one that
// waits, have theirs done. Catches: a pause that nobody wants any more.
func TestCommandOfAKilledSender(t *testing.T) {
	root := zktest.Root(t)
	_, s := dial(t, root)
	d := start(t, root, zkmodel.KindLauncher, "nl01", "one") // does not listen yet, as if it was stopped
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: root, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	killed, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	to := daemons(t, s)
	var sent sync.WaitGroup
	sent.Go(func() {
		_, _ = manage.NewSender(killed, "ann").Send(ctx, to, manage.Command{Verb: "do", Argument: "late"}, time.Minute)
	})
	ids := func() []string {
		names, _ := s.Children(t.Context(), manage.Root+"/requests")
		return names
	}
	zktest.Eventually(t, func() bool { return len(ids()) == 1 }, "the command is given")
	id := ids()[0]
	proxy.Cut()
	cancel()
	d.listen()
	zktest.Eventually(t, func() bool {
		data, _, err := s.Get(t.Context(), manage.Root+"/waiters/"+id)
		return errors.Is(err, recipe.ErrNoNode) || string(data) == "withdrawn"
	}, "the daemon takes it back")
	old := recipe.NewQueue(s, manage.Root)
	if _, err := old.Submit(t.Context(), "one-old", []byte(`{"verb": "do", "argument": "old", "instance": "one"}`), nil, old.OpsWait("one-old", "bob")...); err != nil {
		t.Fatal(err)
	}
	if got := <-d.done; got != "old" {
		t.Errorf("done: %q", got)
	}
	if a := send(t, s, daemons(t, s), "do", "new", time.Minute)["nl01"]; !a.Done || <-d.done != "new" {
		t.Errorf("the answer to a sender that waits: %+v", a)
	}
	proxy.Heal()
	sent.Wait()
}
