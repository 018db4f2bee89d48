package launcher_test

import (
	"context"
	"fmt"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A launcher that dies at any step leaves a request that another one serves, and
// nothing else.
func TestAnotherLauncherGoesOn(t *testing.T) {
	t.Parallel()
	for _, op := range []string{fake.OpCreate, fake.OpWait} {
		for _, done := range []bool{false, true} {
			name := op + " asked"
			if done {
				name = op + " answered"
			}
			t.Run(name, func(t *testing.T) {
				s := newSite(t, onePool)
				s.image()
				reached := make(chan struct{}, 10)
				s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
					if c.Op != op || c.Done != done {
						return nil
					}
					reached <- struct{}{}
					<-ctx.Done() // the answer never arrives
					return context.Cause(ctx)
				})
				first := s.launch()
				id := s.submit(zuul.Wish{Labels: []string{"small"}})
				<-reached
				s.clouds["cloud"].SetHook(nil)
				first.client.Close() // the session ends, and with it every lock
				s.launch()
				out := s.wait(id)
				if out.State != "fulfilled" || len(out.Nodes) != 1 {
					t.Fatalf("%+v", out)
				}
				zktest.Eventually(t, func() bool {
					return len(s.nodes()) == 1 && s.machines("cloud") == 1
				}, "one node and one machine")
			})
		}
	}
}

// A launcher that loses its session goes on with the next one.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: s.root, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.launch(func(d *launcher.Deps) { d.Client = client })
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	booting := s.stall()
	id := s.submit(zuul.Wish{Labels: []string{"large"}})
	zktest.Await(t, booting, "a machine boots")
	s.clouds["cloud"].SetHook(nil)
	proxy.Cut()
	<-session.Context().Done()
	proxy.Heal()
	if out := s.wait(id); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 2 && s.machines("cloud") == 2 },
		"two nodes, two machines, nothing of the lost session")
	zktest.Eventually(t, func() bool { return len(s.pools()) == 1 }, "one pool registered")
}

// pools lists the ids of the registered pools.
func (s *site) pools() []string {
	s.t.Helper()
	members, err := recipe.Members(s.t.Context(), s.store.Session(), zkmodel.ComponentsRoot+"/pool")
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for _, m := range members {
		ids = append(ids, zkmodel.DecodeComponent(m.Name, m.Data).ID)
	}
	return ids
}

// What is registered is what Zuul reads, and it goes with the launcher.
func TestRegistration(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	l := s.launch()
	zktest.Eventually(t, func() bool { return len(s.pools()) == 1 }, "the pool registered")
	members, err := recipe.Members(t.Context(), s.store.Session(), zkmodel.ComponentsRoot+"/pool")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"hostname": "host", "id": "` + s.pools()[0] + `", "kind": "pool", "knows": ["verdicts", "validation"], "model_api": 0, "name": "main", "paused": false, ` +
		`"priority": 100, "provider_name": "cloud", "state": "running", "supported_labels": ["small", "large"], "version": "1.0"}`
	if got := string(members[0].Data); got != want {
		t.Errorf("registered as\n%s, want\n%s", got, want)
	}
	l.stop()
	if got := s.pools(); len(got) != 0 {
		t.Errorf("still registered after the end: %v", got)
	}
}

// orphan makes a node's record, as a launcher leaves it that dies.
func (s *site) orphan(state zkmodel.NodeState, change func(*zkmodel.Node)) string {
	s.t.Helper()
	ctx := s.t.Context()
	if err := s.store.Session().EnsurePath(ctx, zkmodel.NodesRoot); err != nil {
		s.t.Fatal(err)
	}
	n := &zkmodel.Node{
		Provider: "cloud", Pool: "main", Type: zkmodel.Strings{"small"}, Launcher: "gone",
		Resources: map[string]int{providers.Instances: 1},
	}
	n.State, n.StateTime = state, zkmodel.EpochOf(time.Now())
	if change != nil {
		change(n)
	}
	data, err := n.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := s.store.Session().Create(ctx, zkmodel.NodesRoot+"/", data, recipe.Sequential) // at once: a launcher may look on
	if err != nil {
		s.t.Fatal(err)
	}
	return path.Base(made)
}

// machine makes a machine in the cloud for a node's id.
func (s *site) machine(node string) string {
	s.t.Helper()
	id, err := s.clouds["cloud"].CreateNode(s.t.Context(), providers.NodeSpec{
		NodeID: node, Pool: "main", Label: "small", ImageID: "image",
		Metadata: map[string]string{providers.MetaNode: node, providers.MetaProvider: "cloud"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestUnlockedNodesByState(t *testing.T) {
	t.Parallel()
	for state, kept := range map[zkmodel.NodeState]bool{
		"init": false, "building": false, "testing": true, "ready": true, "in-use": false, "used": false,
		"hold": true, "failed": false, "aborted": false, "deleting": false, "deleted": false, "melting": true,
	} {
		t.Run(string(state), func(t *testing.T) {
			s := newSite(t, beside(onePool))
			s.image()
			undisturbed := s.neighbours()
			// Its machine was made, but the answer never came into the record.
			id := s.orphan(state, nil)
			if state != zkmodel.NodeInit && state != zkmodel.NodeAborted && state != zkmodel.NodeDeleted {
				s.machine(id)
			}
			last := s.orphan(zkmodel.NodeUsed, nil)
			s.launchTwo()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := s.zuul.WaitGone(ctx, last); err != nil {
				t.Fatal(err)
			}
			undisturbed()
			if kept {
				if n := s.node(id); n.State != state {
					t.Errorf("node is %s now", n.State)
				}
				return
			}
			if err := s.zuul.WaitGone(ctx, id); err != nil {
				t.Fatal(err)
			}
			s.eventuallyEmpty()
		})
	}
}

func TestHoldEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	forever := s.orphan(zkmodel.NodeHold, nil)
	over := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) {
		n.HoldExpiration, n.StateTime = 60, zkmodel.EpochOf(time.Now().Add(-time.Hour))
	})
	soon := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.HoldExpiration = 1 })
	s.launch()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, over, soon); err != nil {
		t.Fatal(err)
	}
	if n := s.node(forever); n.State != zkmodel.NodeHold {
		t.Errorf("the node that is held for ever is %s", n.State)
	}
}

// The configuration's max-hold-age ends holds that set no limit, or a longer one.
func TestMaxHoldAge(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.config.MaxHoldAge = time.Hour
	old := zkmodel.EpochOf(time.Now().Add(-2 * time.Hour))
	forever := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.StateTime = old })
	longer := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.StateTime, n.HoldExpiration = old, 86400 })
	young := s.orphan(zkmodel.NodeHold, func(n *zkmodel.Node) { n.HoldExpiration = 86400 })
	s.launch()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, forever, longer); err != nil {
		t.Fatal(err)
	}
	if n := s.node(young); n.State != zkmodel.NodeHold {
		t.Errorf("the node that was just held is %s", n.State)
	}
}

// A Zuul that dies after it locked its node, and before it used it, leaves a node
// that is others' as soon as its request is gone, and not before.
func TestZuulThatDiesBetweenLockAndUse(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch(func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
	dead, err := zuul.Dial(t.Context(), []string{zktest.Shared(t).Addr()}, s.root, "zuul-dead")
	if err != nil {
		t.Fatal(err)
	}
	first := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	held, err := dead.Accept(t.Context(), first) // locked, and the request deleted
	if err != nil {
		t.Fatal(err)
	}
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	if out := s.wait(id); out.Nodes[0] == held[0].ID {
		t.Errorf("node %s is locked by one Zuul and given to another", held[0].ID)
	}
	if n := s.node(held[0].ID); n.State != zkmodel.NodeReady || n.AllocatedTo != first.ID {
		t.Errorf("the locked node is %s, of %q", n.State, n.AllocatedTo)
	}
	dead.Close()
	zktest.Eventually(t, func() bool {
		n := s.node(held[0].ID)
		return n.State == zkmodel.NodeReady && n.AllocatedTo == ""
	}, "the node free for others")
}

// What Zuul holds for a person is left alone until its time is over.
func TestHoldByZuul(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	nodes, err := s.zuul.Accept(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.Hold(time.Second, "look at this", nodes...); err != nil {
		t.Fatal(err)
	}
	if n := s.node(out.Nodes[0]); n.State != zkmodel.NodeHold || n.HoldExpiration != 1 {
		t.Errorf("node is %s, for %d s", n.State, n.HoldExpiration)
	}
	s.eventuallyEmpty()
}

// Zuul that dies with a job leaves a node in use without a lock.
func TestNodeOfADeadZuulIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch()
	dead, err := zuul.Dial(t.Context(), []string{zktest.Shared(t).Addr()}, s.root, "zuul-dead")
	if err != nil {
		t.Fatal(err)
	}
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	nodes, err := dead.Accept(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.Use(nodes...); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, out.Nodes...); err != nil {
		t.Fatal(err)
	}
	s.eventuallyEmpty()
}

func TestLeakedMachinesTakeTwoLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	kept := s.orphan(zkmodel.NodeHold, nil)
	machine := s.machine(kept)
	s.machine("0000009999") // no such record
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(named(host), func(d *launcher.Deps) { d.Resync = 300 * time.Millisecond })
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 1 }, "the leaked machine gone")
	undisturbed()
	list, err := s.clouds["cloud"].ListNodes(t.Context())
	if err != nil || len(list) != 1 || list[0].ExternalID != machine {
		t.Errorf("left in the cloud: %v (%v), want %s", list, err, machine)
	}
}

// A lock of kazoo that comes too late makes a record anew, empty. It stays as long as a machine has its id;
// catches a machine that stays as long as the record.
func TestMachineOfARecordThatNeverHeldAnything(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	const node = "0000009999"
	if err := s.store.Session().EnsurePath(t.Context(), zkmodel.LockPath(zkmodel.NodePath(node))); err != nil {
		t.Fatal(err)
	}
	s.machine(node)
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(named(host), func(d *launcher.Deps) { d.Resync = 300 * time.Millisecond })
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 0 }, "the machine gone")
	undisturbed()
}

// What the search of a launcher that is gone has found counts for the next launcher: where one is lost
// between any two searches, leaks would stay for ever. And it is forgotten once it is done.
func TestLeakedMachineFoundByAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	id := s.machine("0000009999") // no such record
	const path = "/poolkeeper/leaked-machines/cloud"
	if err := s.store.Session().EnsurePath(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	found := fmt.Sprintf(`{"%s": "%s"}`, id, time.Now().Add(-40*time.Minute).Format(time.RFC3339))
	if _, err := s.store.Session().Set(t.Context(), path, []byte(found), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	s.launch(named("nl01"), func(d *launcher.Deps) { d.Resync = time.Hour })
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 0 }, "the leaked machine gone")
	zktest.Eventually(t, func() bool {
		_, there, err := s.store.Session().Exists(t.Context(), path)
		return err == nil && !there
	}, "nothing remembered")
}

// Another installation that shares the cloud, and calls its provider alike, keeps
// its machines: also those whose nodes have the numbers of ours.
func TestMachinesOfAnotherSiteAreNotOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	ours := s.orphan(zkmodel.NodeUsed, nil) // its machine is looked for by the number
	theirs := map[string]bool{}
	for _, node := range []string{"0000009999", ours} {
		id, err := s.clouds["cloud"].CreateNode(t.Context(), providers.NodeSpec{
			NodeID: "x" + node, Pool: "main", Label: "small", ImageID: "image",
			Metadata: map[string]string{
				providers.MetaNode: node, providers.MetaProvider: "cloud", providers.MetaSite: "theirs",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		theirs[id] = true
	}
	s.machine("0000008888") // of a Nodepool: it says no site
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(named(host), func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, ours); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 2 }, "the leaked machine gone")
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	list, err := s.clouds["cloud"].ListNodes(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%v (%v)", list, err)
	}
	for _, m := range list {
		if made := m.Metadata[providers.MetaSite]; made == "" || (made == "theirs") != theirs[m.ExternalID] {
			t.Errorf("machine %s is of site %q", m.ExternalID, made)
		}
	}
	undisturbed()
}

// A machine that the cloud does not delete is asked for again, and holds up the deletion
// of no other, there or elsewhere.
func TestCloudThatDoesNotDeleteIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	id := s.orphan(zkmodel.NodeUsed, nil)
	machine := s.machine(id)
	var others []string
	for _, n := range []*zkmodel.Node{s.resident(zkmodel.NodeUsed), s.resident(zkmodel.NodeUsed)} {
		others = append(others, n.ID)
	}
	for range 2 {
		other := s.orphan(zkmodel.NodeUsed, nil)
		s.machine(other)
		others = append(others, other)
	}
	var failures atomic.Int32
	var mended atomic.Bool
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpDeleteNode && !c.Done && c.ID == machine && !mended.Load() {
			failures.Add(1)
			return providers.ErrTransient
		}
		return nil
	})
	s.launchTwo()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, others...); err != nil {
		t.Error(err)
	}
	zktest.Eventually(t, func() bool { return failures.Load() >= 2 }, "it is asked again")
	undisturbed()
	if n := s.node(id); n.State != zkmodel.NodeDeleting {
		t.Errorf("the node whose machine is there is %s", n.State)
	}
	mended.Store(true)
	s.eventuallyEmpty()
}

// A lock that kazoo takes on a node that is just gone leaves an empty znode, and
// locks of requests stay behind: both are cleaned.
func TestDebrisOfLocks(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	ctx := t.Context()
	for _, path := range []string{
		zkmodel.NodePath("0000000000") + "/lock", zkmodel.RequestLockPath("200-0000000000"),
	} {
		if err := s.store.Session().EnsurePath(ctx, path); err != nil {
			t.Fatal(err)
		}
	}
	s.launch(func(d *launcher.Deps) {
		d.Now = func() time.Time { return time.Now().Add(time.Hour) } // the empty znode is old
	})
	zktest.Eventually(t, func() bool { return len(s.nodes()) == 0 }, "the empty node gone")
	zktest.Eventually(t, func() bool {
		left, err := s.store.Session().Children(ctx, zkmodel.LocksRoot)
		return err == nil && len(left) == 0
	}, "no lock folder left")
}
