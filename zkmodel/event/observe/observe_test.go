package observe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/observe"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent is a daemon of ours that tells its changes and observes what others write.
type agent struct {
	store *zkmodel.Store
	stop  func()
}

// site is a tree with who works at it.
type site struct {
	t    *testing.T
	addr string
	root string
	// own tells nothing: it looks at the tree.
	own *zkmodel.Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, addr: zktest.Shared(t).Addr(), root: zktest.Root(t)}
	client := s.dial(s.addr)
	t.Cleanup(client.Close)
	s.own = s.storeOf(client)
	return s
}

func (s *site) dial(addr string) *recipe.Client {
	s.t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: s.root, Timeout: 2 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func (s *site) storeOf(client *recipe.Client) *zkmodel.Store {
	s.t.Helper()
	session, err := client.Session(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return zkmodel.NewStore(session, nil)
}

// agent begins one. parts are what it observes.
func (s *site) agent(name string, parts ...observe.Part) *agent {
	s.t.Helper()
	a := s.agentAt(name, s.addr, parts...)
	a.store = s.storeOf(a.client())
	return a.agent
}

// begun is an agent that may have no session.
type begun struct {
	*agent
	client func() *recipe.Client
}

func (s *site) agentAt(name, addr string, parts ...observe.Part) begun {
	s.t.Helper()
	client := s.dial(addr)
	client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/"+name))
	tree := zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartRequests|zkmodel.PartNodes|zkmodel.PartComponents, hclog.NewNullLogger())
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = tree.Run(ctx) })
	for _, part := range parts {
		o := observe.New(part, observe.Deps{
			Client: client, Tree: tree, Member: name, SaveEvery: 50 * time.Millisecond,
			Logger: hclog.New(&hclog.LoggerOptions{Name: name, Output: s.t.Output()}),
		})
		group.Go(func() { o.Run(ctx) })
	}
	a := &agent{stop: sync.OnceFunc(func() {
		cancel()
		group.Wait()
		client.Close()
	})}
	s.t.Cleanup(a.stop)
	return begun{a, func() *recipe.Client { return client }}
}

// told are the events of the log, without those of nodes and providers: type, subject and
// whether others made the change.
func (s *site) told() []string {
	s.t.Helper()
	reader := recipe.NewLog(event.Root, "").Read(s.own.Session(), recipe.LogPosition{})
	var list []string
	for {
		entry, ok, err := reader.Poll(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if !ok {
			return list
		}
		e, err := event.Of(entry)
		if err != nil {
			s.t.Fatal(err)
		}
		line := strings.TrimPrefix(e.Type, "poolkeeper.") + " " + e.Subject
		if e.Observed {
			line += " observed"
		}
		list = append(list, line)
	}
}

// eventually waits until the log has some events, in any order, and nothing else.
func (s *site) eventually(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	var got []string
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		got = s.told()
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		if len(got) > len(want) {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	s.t.Fatalf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// saved waits until a mark shows all that there is.
func (s *site) saved(part observe.Part, after recipe.Stat) recipe.Stat {
	s.t.Helper()
	var stat recipe.Stat
	zktest.Eventually(s.t, func() bool {
		var err error
		_, stat, err = s.own.Session().Get(s.t.Context(), part.MarkPath())
		return err == nil && stat.DataLength > 0 && stat.Mzxid > after.Mzxid
	}, "the mark is written")
	return stat
}

// build makes a build and its upload as our builder does.
func (s *site) build(store *zkmodel.Store, image string) (events []string) {
	s.t.Helper()
	ctx := s.t.Context()
	check := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	lock, err := store.LockBuilds(ctx, image)
	check(err)
	b := &zkmodel.Build{Image: image, Builder: "ours"}
	check(store.CreateBuild(ctx, lock, b))
	b.Log = "http://ours/log"
	check(store.SaveBuild(ctx, lock, b))
	check(zkmodel.Move(b, zkmodel.BuildReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now())))
	check(store.SaveBuild(ctx, lock, b))
	check(lock.Release(ctx))
	lock, err = store.LockUploads(ctx, image, b.ID, "north")
	check(err)
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: image, Build: b.ID, Provider: "north"}}
	check(store.CreateUpload(ctx, lock, u))
	check(zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now())))
	check(store.SaveUpload(ctx, lock, u))
	check(lock.Release(ctx))
	return []string{"build.began build/" + b.Name(), "build.ready build/" + b.Name(), "upload.ready upload/" + b.Name() + "/north/" + u.ID}
}

// asNodepool writes as Nodepool's builder, launcher and commands do, when it is told to.
const asNodepool = `
import json, time
def record(state, age=0, **more):
    return json.dumps(dict(more, state=state, state_time=time.time() - age)).encode()
made = dict(builder='np', builder_id='np', formats='qcow2', username='zuul', python_path='auto', shell_type=None)
say('up')
while True:
    words = hear().split()
    if not words:
        break
    what, path = words[0], words[1]
    if what == 'create':
        zk.create(path, record(words[2], **made), makepath=True)
    elif what == 'import': # of a record that was written a year ago
        zk.create(path, record(words[2], age=365 * 86400, **made), makepath=True)
    elif what == 'set':
        zk.set(path, record(words[2], **made))
    elif what == 'rewrite':
        zk.set(path, zk.get(path)[0])
    elif what == 'flag':
        zk.ensure_path(path)
    elif what == 'delete':
        zk.delete(path)
    say('done')
`

// nodepool is who writes beside us.
func (s *site) nodepool() (do func(format string, args ...any)) {
	s.t.Helper()
	np := zktest.StartKazoo(s.t, s.addr, s.root, asNodepool)
	np.Expect("up")
	return func(format string, args ...any) {
		s.t.Helper()
		np.Say(fmt.Sprintf(format, args...))
		np.Expect("done")
	}
}

// Mistakes: what Nodepool's daemons and commands do that is not told, or not marked; a change
// of ours that is told twice; one of theirs that is, when its record is written again or the
// agent that looks is another; what they did while no agent ran that is not told.
func TestOthersAreObserved(t *testing.T) {
	s := newSite(t)
	do := s.nodepool()
	// What is there at first is no news.
	do("create %s ready", zkmodel.BuildPath("debian", "0000000001"))
	do("flag %s", zkmodel.PausePath("suse"))
	one := s.agent("one", observe.Images, observe.Requests)
	mark := s.saved(observe.Images, recipe.Stat{})
	s.saved(observe.Requests, recipe.Stat{})
	two := s.agent("two", observe.Images, observe.Requests)

	want := s.build(one.store, "fedora")
	want = append(want, s.build(two.store, "debian")...)
	build, upload := zkmodel.BuildPath("debian", "77"), zkmodel.UploadPath("debian", "77", "north", "0000000001")
	do("create %s building", build)
	want = append(want, "build.began build/debian-77 observed")
	s.eventually(want...)
	do("set %s ready", build)
	do("create %s uploading", upload)
	do("set %s failed", upload)
	do("create %s failed", zkmodel.BuildPath("fedora", "78"))
	do("create %s failed", zkmodel.RequestPath("100-0000000000"))
	do("create %s pending", zkmodel.RequestPath("100-0000000001"))
	do("flag %s", zkmodel.PausePath("fedora"))
	do("delete %s", zkmodel.PausePath("suse"))
	if _, err := operate.New(one.store, "ann").Pause(t.Context(), "debian", "", 0); err != nil {
		t.Fatal(err)
	}
	want = append(want, "build.ready build/debian-77 observed", "upload.failed upload/debian-77/north/0000000001 observed",
		"build.failed build/fedora-78 observed", "request.failed request/100-0000000000 observed",
		"image.paused image/fedora observed", "image.unpaused image/suse observed", "image.paused image/debian")
	s.eventually(want...)
	do("rewrite %s", build)
	do("set %s ready", build) // which it was
	imported := zkmodel.BuildPath("import", "80")
	do("import %s ready", imported)
	do("import %s ready", imported+"/providers/north/images/0000000001")
	mark = s.saved(observe.Images, mark)

	// The first agent goes; while there is another, and while there is none, others go on.
	one.stop()
	do("set %s ready", upload)
	want = append(want, "upload.ready upload/debian-77/north/0000000001 observed")
	s.eventually(want...)
	s.saved(observe.Images, mark)
	two.stop()
	do("rewrite %s", build)
	do("set %s deleting", build)
	do("create %s building", zkmodel.BuildPath("suse", "79"))
	do("set %s ready", zkmodel.BuildPath("suse", "79"))
	do("delete %s", zkmodel.PausePath("debian"))
	do("set %s failed", zkmodel.RequestPath("100-0000000001"))
	silent := s.storeOf(s.silent())
	if _, err := operate.New(silent, "ann").Pause(t.Context(), "suse", "", 0); err != nil { // of ours, without events
		t.Fatal(err)
	}
	three := s.agent("three", observe.Images, observe.Requests)
	want = append(want, "build.deleting build/debian-77 observed", "build.ready build/suse-79 observed", "image.unpaused image/debian observed",
		"request.failed request/100-0000000001 observed", "image.paused image/suse observed")
	want = append(want, s.build(three.store, "fedora")...)
	s.eventually(want...)
}

// Mistake: a mark of failed requests whose place in the log stays where the last failed, so
// that the next failure, or the next who looks, reads all events since.
func TestTheLogIsReadAsItGrows(t *testing.T) {
	s := newSite(t)
	do := s.nodepool()
	one := s.agent("one", observe.Requests)
	mark := s.saved(observe.Requests, recipe.Stat{})
	s.build(one.store, "debian")
	end, err := recipe.NewLog(event.Root, "").End(t.Context(), s.own.Session())
	if err != nil {
		t.Fatal(err)
	}
	do("create %s pending", zkmodel.RequestPath("100-0000000000"))
	s.saved(observe.Requests, mark)
	data, _, err := s.own.Session().Get(t.Context(), observe.Requests.MarkPath())
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Log recipe.LogPosition }
	if err := json.Unmarshal(data, &m); err != nil || m.Log != end || end.Number == 0 {
		t.Errorf("the mark is at %s, want the end of the log %s: %v", m.Log, end, err)
	}
}

// silent is a client of ours that tells nothing.
func (s *site) silent() *recipe.Client {
	client := s.dial(s.addr)
	s.t.Cleanup(client.Close)
	return client
}

// Mistake: an agent that is killed between two requests, of which the next tells again what
// was told, or does not tell what was not.
func TestObserversKilledAfterAnyRequest(t *testing.T) {
	for _, n := range []int{20, 31, 33, 34, 35, 36, 38} { // most of these are between the looks and the mark
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			observerKilledAfter(t, n)
		})
	}
}

func observerKilledAfter(t *testing.T, requests int) {
	t.Helper()
	s := newSite(t)
	first := s.agent("first", observe.Images)
	mark := s.saved(observe.Images, recipe.Stat{})
	first.stop()
	for at, data := range map[string]string{
		zkmodel.BuildPath("debian", "1"):                         `{"state": "ready"}`,
		zkmodel.UploadPath("debian", "1", "north", "0000000001"): `{"state": "failed"}`,
		zkmodel.PausePath("fedora"):                              "",
	} {
		err := s.own.Session().EnsurePath(t.Context(), at)
		if err == nil {
			_, err = s.own.Session().Set(t.Context(), at, []byte(data), recipe.AnyVersion)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tap := zktest.StartTap(t, s.addr, requests)
	killed := s.agentAt("killed", tap.Addr(), observe.Images)
	zktest.Eventually(t, func() bool {
		_, stat, err := s.own.Session().Get(t.Context(), observe.Images.MarkPath())
		return tap.Ended() || err == nil && stat.Mzxid > mark.Mzxid && len(s.told()) == 3
	}, "all is told, or the agent is killed")
	t.Logf("killed before all was done: %t, with %d told", tap.Ended(), len(s.told()))
	killed.stop()
	s.agent("next", observe.Images)
	s.eventually("build.ready build/debian-1 observed", "upload.failed upload/debian-1/north/0000000001 observed", "image.paused image/fedora observed")
	s.saved(observe.Images, mark)
	if n := len(s.told()); n != 3 {
		t.Errorf("%d are told", n)
	}
}
