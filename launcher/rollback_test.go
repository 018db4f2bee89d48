package launcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher"
	"poolkeeper/launcher/step"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// threeImages has three images in two providers, a label each.
const threeImages = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: cloud-debian}, {name: cloud-fedora}, {name: cloud-suse}, {name: other-debian}, {name: other-fedora}]
diskimages: [{name: debian, elements: [debian]}, {name: fedora, elements: [fedora]}, {name: suse, elements: [suse]}]
providers:
  - name: cloud
    driver: fake
    cloud: fake
    diskimages: [{name: debian}, {name: fedora}, {name: suse}]
    pools:
      - name: main
        max-servers: 12
        labels:
          - {name: cloud-debian, diskimage: debian, min-ram: 1024}
          - {name: cloud-fedora, diskimage: fedora, min-ram: 1024}
          - {name: cloud-suse, diskimage: suse, min-ram: 1024}
  - name: other
    driver: fake
    cloud: fake
    diskimages: [{name: debian}, {name: fedora}, {name: suse}]
    pools:
      - name: main
        max-servers: 12
        labels:
          - {name: other-debian, diskimage: debian, min-ram: 1024}
          - {name: other-fedora, diskimage: fedora, min-ram: 1024}
`

// judge says something of debian's builds, as the commands do.
func (s *site) judge(change func(*operate.Judgement)) {
	s.t.Helper()
	j := operate.Judgement{Image: "debian", Kind: zkmodel.RolledBack, Reason: "no network"}
	if change != nil {
		change(&j)
	}
	if _, err := operate.New(s.store, "ann@desk").Judge(s.t.Context(), j); err != nil {
		s.t.Fatal(err)
	}
}

// idle leaves an idle ready node of a label.
func (s *site) idle(label string) *zkmodel.Node {
	s.t.Helper()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{label}, Fresh: true}))
	if out.State != "fulfilled" {
		s.t.Fatalf("%+v", out)
	}
	if err := s.zuul.Cancel(out.ID); err != nil {
		s.t.Fatal(err)
	}
	zktest.Eventually(s.t, func() bool { n := s.node(out.Nodes[0]); return n.AllocatedTo == "" }, "node %s is free", out.Nodes[0])
	return s.node(out.Nodes[0])
}

// used gives a node of a label to Zuul, which has it from now on.
func (s *site) used(label string) (*zkmodel.Node, []*zuul.Node) {
	s.t.Helper()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{label}, Fresh: true}))
	nodes, err := s.zuul.Accept(s.t.Context(), out)
	if err == nil {
		err = s.zuul.Use(nodes...)
	}
	if err != nil {
		s.t.Fatalf("%+v %v", out, err)
	}
	return s.node(out.Nodes[0]), nodes
}

// bootsFrom fails unless a new node of a label boots from a build, once launchers see all
// that was said before.
func (s *site) bootsFrom(label string, want *zkmodel.Build, launchers ...*running) {
	s.t.Helper()
	for _, l := range launchers {
		if err := l.Tree().Barrier(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	out := s.wait(s.submit(wish(label)))
	if out.State != "fulfilled" {
		s.t.Fatalf("%s: %+v", label, out)
	}
	if n := s.node(out.Nodes[0]); !strings.HasPrefix(n.ImageID, want.Path()+"/") {
		s.t.Errorf("a node of %s boots from %s, want build %s", label, n.ImageID, want.ID)
	}
	if err := s.zuul.Cancel(out.ID); err != nil {
		s.t.Fatal(err)
	}
}

// gone waits until a node is.
func (s *site) gone(n *zkmodel.Node) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, n.ID); err != nil {
		s.t.Errorf("node %s of %s: %v", n.ID, n.ImageID, err)
	}
}

// untouched fails when anything was written to nodes.
func (s *site) untouched(nodes ...*zkmodel.Node) {
	s.t.Helper()
	for _, n := range nodes {
		if now, err := s.store.Node(s.t.Context(), n.ID); err != nil || now.Stat.Mzxid != n.Stat.Mzxid {
			s.t.Errorf("node %s of %s was touched: %+v (%v)", n.ID, n.ImageID, now, err)
		}
	}
}

// A rollback reaches all launchers: new nodes boot from the build before, idle ones of the
// bad build go, used ones stay, and so does all of other images and, where one is named, of
// other providers. Without a pin the next build serves; with one it waits until it is
// released. Mistakes: a launcher that goes on with the bad build, an idle node of it that
// is given to a request, a node in use that is taken from its job, a neighbour that is
// deleted too.
func TestRollback(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	good := s.image()
	for _, image := range []string{"fedora", "suse"} {
		s.imageOf(image)
	}
	bad := s.imageOf("debian")
	log := &book{}
	heard := func(d *launcher.Deps) { d.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) }
	both := []*running{s.launch(named("nl01"), heard), s.launch(named("nl02"))}
	idle := []*zkmodel.Node{s.idle("cloud-debian"), s.idle("cloud-debian")}
	busy, theirs := s.used("cloud-debian")
	kept := []*zkmodel.Node{s.idle("cloud-fedora"), s.idle("cloud-suse"), s.idle("other-debian"), s.idle("other-fedora")}

	s.judge(func(j *operate.Judgement) { j.Providers = []string{"cloud"} })
	for range 4 { // by whichever launcher
		s.bootsFrom("cloud-debian", good, both...)
	}
	for _, n := range idle {
		s.gone(n)
	}
	s.untouched(append(kept, busy)...)
	s.bootsFrom("other-debian", bad, both...)
	zktest.Eventually(t, func() bool {
		return strings.Contains(log.String(), "Nodes boot from the build that is left to serve: image=debian provider=cloud build="+good.ID)
	}, "the log tells of it")
	if err := s.zuul.Return(theirs...); err != nil {
		t.Fatal(err)
	}
	s.gone(busy)

	next := s.imageOf("debian")
	s.bootsFrom("cloud-debian", next, both...)
	s.judge(func(j *operate.Judgement) { j.Providers, j.Pin = []string{"cloud"}, true })
	s.bootsFrom("cloud-debian", good, both...)
	after := s.imageOf("debian")
	s.bootsFrom("other-debian", after, both...)
	s.bootsFrom("cloud-debian", good, both...)
	if _, err := operate.New(s.store, "ann@desk").Release(t.Context(), "debian", nil); err != nil {
		t.Fatal(err)
	}
	s.bootsFrom("cloud-debian", after, both...)
	// What was said is taken back: the newest of all serves, also where it was bad.
	s.judge(func(j *operate.Judgement) { j.Build, j.Kind = after.ID, zkmodel.Rejected })
	s.bootsFrom("cloud-debian", good, both...)
	s.bootsFrom("other-debian", next, both...)
	if _, err := operate.New(s.store, "ann@desk").Promote(t.Context(), "debian", after.ID, nil); err != nil {
		t.Fatal(err)
	}
	s.bootsFrom("cloud-debian", after, both...)
	s.settled()
}

// A node that is still booting when its build is rolled back is not given to its request:
// it is launched again from the build that serves, beyond launch-retries if need be. One of
// another image boots on. Mistake: a job on a machine of the bad build.
func TestRollbackOfWhatBoots(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	for i := range s.config.Providers {
		s.config.Providers[i].LaunchRetries = 1
	}
	good := s.image()
	s.imageOf("debian")
	booting, goOn := make(chan struct{}, 10), make(chan struct{})
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done {
			booting <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return nil
	})
	one := s.launch(named("nl01"))
	bad, other := s.submit(wish("cloud-debian")), s.submit(wish("cloud-fedora"))
	zktest.Await(t, booting, "a machine boots")
	zktest.Await(t, booting, "a machine boots")
	s.judge(nil)
	if err := one.Tree().Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for id, attempt := range map[string]int{bad: 2, other: 1} {
		out := s.wait(id)
		if out.State != "fulfilled" {
			t.Fatalf("%+v", out)
		}
		n := s.node(out.Nodes[0])
		if id == bad && !strings.HasPrefix(n.ImageID, good.Path()+"/") || n.Attempt != attempt {
			t.Errorf("%v boots from %s at attempt %d", n.Type, n.ImageID, n.Attempt)
		}
	}
	s.settled()
}

// A launcher that is killed while it takes the idle nodes of a bad build away leaves
// nothing that the other does not bring to its end.
func TestRollbackKilledAtEveryStep(t *testing.T) {
	for _, at := range []step.Step{step.DeleteLocked, step.DeleteMarked, step.DeleteCloud, step.Deleted} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s, c := newCrashSite(t, threeImages)
			good := s.image()
			s.imageOf("debian")
			c.Name = "before"
			first := c.spawn(t)
			idle := []*zkmodel.Node{s.idle("cloud-debian"), s.idle("cloud-debian"), s.idle("other-debian")}
			kept := []*zkmodel.Node{s.idle("cloud-fedora"), s.idle("cloud-suse")}
			s.settled()
			first.stop()
			c.At = at
			for _, c.Name = range []string{"one", "two"} {
				c.spawn(t)
			}
			s.judge(nil)
			c.died(t)
			for _, n := range idle {
				s.gone(n)
			}
			s.untouched(kept...)
			s.bootsFrom("cloud-debian", good)
			s.bootsFrom("other-debian", good)
			s.settled()
		})
	}
}

// listenedTo is a site of three images, and what its launcher, which has served a request,
// asks ZooKeeper for.
func listenedTo(t *testing.T) (*site, *zktest.Tap) {
	t.Helper()
	s := newSite(t, threeImages)
	s.image()
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	client, err := recipe.Dial(recipe.Config{Servers: []string{tap.Addr()}, Chroot: s.root, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.launch(func(d *launcher.Deps) { d.Client = client })
	s.idle("cloud-debian")
	return s, tap
}

// Where nothing was said of a build, nothing of it stands in the tree, and no decision
// asks for it: the folder is looked for when a session begins, and watched. Mistakes: a
// znode more, a read a request or a node.
func TestNoVerdictCostsNothing(t *testing.T) {
	t.Parallel()
	s, tap := listenedTo(t)
	reads := tap.Naming(zkmodel.VerdictsRoot)
	for _, label := range []string{"cloud-debian", "cloud-fedora", "cloud-suse", "other-debian", "other-fedora"} {
		s.idle(label)
	}
	s.imageOf("debian")
	s.bootsFromAny("cloud-debian")
	if got := tap.Naming(zkmodel.VerdictsRoot); got != reads || reads == 0 || reads > 2 {
		t.Errorf("%d requests to ZooKeeper name %s when it serves, and %d later", reads, zkmodel.VerdictsRoot, got)
	}
	if got := tap.Naming(zkmodel.ValidationsRoot); got != 0 {
		t.Errorf("%d requests to ZooKeeper name %s, and nothing is validated", got, zkmodel.ValidationsRoot)
	}
	for _, path := range []string{zkmodel.VerdictsRoot, zkmodel.ValidationsRoot} {
		if _, there, err := s.store.Session().Exists(t.Context(), path); err != nil || there {
			t.Errorf("%s is there (%v)", path, err)
		}
	}
}

// bootsFromAny has a node launched.
func (s *site) bootsFromAny(label string) {
	s.t.Helper()
	if out := s.wait(s.submit(wish(label))); out.State != "fulfilled" {
		s.t.Fatalf("%+v", out)
	}
}

// A record of verdicts that nobody can read stops no launcher, and takes nothing back: the
// uploads' own marks go on to count. Mistake: the bad build serves again.
func TestUnreadableVerdicts(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	good := s.image()
	bad := s.imageOf("debian")
	s.judge(nil)
	one := s.launch()
	s.bootsFrom("cloud-debian", good)
	if _, err := s.store.Session().Set(t.Context(), zkmodel.VerdictsPath("debian"), []byte("no JSON"), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	s.bootsFrom("cloud-debian", good, one)
	s.bootsFromAny("cloud-fedora")
	j := operate.Judgement{Image: "debian", Build: bad.ID, Kind: zkmodel.Rejected}
	if _, err := operate.New(s.store, "ann").Judge(t.Context(), j); err == nil || !strings.Contains(err.Error(), zkmodel.VerdictsPath("debian")) {
		t.Errorf("a command over it: %v", err)
	}
}

// Beside a launcher of the first release, which knows no verdicts: the command names it,
// and deletes nothing by itself; by an operator's word the bad build is out of the reach of
// both. Mistakes: a launcher that nobody is told of; a node of the bad build after it was
// taken away.
func TestRollbackBesideFirstRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, threeImages)
	good := s.image()
	bad := s.imageOf("debian")
	s.launchRelease(threeImages)
	s.launch()
	zktest.Eventually(t, func() bool { return len(s.pools()) == 4 }, "both launchers' pools are registered")
	say := func(remove bool) []operate.Judged {
		t.Helper()
		all, err := operate.New(s.store, "ann").Judge(t.Context(), operate.Judgement{Image: "debian", Build: bad.ID, Kind: zkmodel.RolledBack, Delete: remove})
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v %v", all, err)
		}
		return all
	}
	for _, one := range say(false) {
		if len(one.Deaf) != 1 || one.Uploads[0].State != zkmodel.UploadReady {
			t.Errorf("in %s %d launchers do not heed it, and the upload is %s", one.Provider, len(one.Deaf), one.Uploads[0].State)
		}
	}
	for _, one := range say(true) {
		if len(one.Deaf) != 0 || one.Uploads[0].State != zkmodel.UploadDeleting {
			t.Errorf("in %s %d launchers do not heed it, and the upload is %s", one.Provider, len(one.Deaf), one.Uploads[0].State)
		}
	}
	for range 4 { // by either
		s.bootsFrom("cloud-debian", good)
		s.bootsFrom("other-debian", good)
	}
	s.bootsFromAny("cloud-fedora")
}
