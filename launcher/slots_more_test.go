package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers/fake"
	"poolkeeper/test/sshd"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// Mistake: a request for a slot that waits for ever for a backing node that cannot be had, or
// that does not say why; or one provider's that holds up another's.
func TestNoBackingNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	s.clouds["other"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && c.Done {
			return errors.New("the cloud burns")
		}
		return nil
	})
	s.launchTwo()
	failing := s.submit(wish("bunk"))
	_, job := s.given("slot")
	out := s.wait(failing)
	if out.State != "failed" || !strings.Contains(out.Reason, "huge") || !strings.Contains(out.Reason, "the cloud burns") {
		t.Errorf("%+v", out)
	}
	s.back(job)
	s.released("slots", "bunks")
	for _, r := range s.requests() {
		if r.ID != failing {
			t.Errorf("request %s of %s is left", r.ID, r.Requestor)
		}
	}
}

// Mistake: a node for a request that is gone that keeps its backing node for ever, or has more of
// them asked for.
func TestSlotThatNobodyWantsAnyMore(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(slotted, "{name: slot}", "{name: slot, max-ready-age: 1}", 1))
	s.image()
	booting, boots := make(chan struct{}, 9), make(chan struct{})
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done {
			booting <- struct{}{}
			select {
			case <-boots:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	s.launchTwo()
	id := s.submit(wish("slot"))
	zktest.Await(t, booting, "a machine boots")
	if err := s.zuul.Cancel(id); err != nil {
		t.Fatal(err)
	}
	close(boots)
	s.released("slots", "bunks")
	if len(booting) > 0 {
		t.Errorf("%d more machines were booted", len(booting))
	}
}

// Mistake: a backing node that is given back before min-retention-time, or that takes new nodes
// after max-age.
func TestSlotsHeedAges(t *testing.T) {
	t.Parallel()
	yaml := strings.Replace(slotted, "max-parallel-jobs: 2, grace-time: 1", "max-parallel-jobs: 2, grace-time: 0, min-retention-time: 6", 1)
	yaml = strings.Replace(yaml, "max-parallel-jobs: 3, grace-time: 1", "max-parallel-jobs: 3, grace-time: 60, max-age: 3", 1)
	s := newSite(t, yaml)
	s.image()
	s.launchTwo()
	begun := time.Now()
	child, job := s.given("slot")
	s.back(job)
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 0 }, "the slot free")
	on, _ := child.OnSlot()
	if n, err := s.store.Node(t.Context(), on.Backing); time.Since(begun) < 5*time.Second && (err != nil || n.State != zkmodel.NodeInUse) {
		t.Errorf("within min-retention-time the backing node is %+v, %v", n, err)
	}
	old, held := s.given("bunk")
	made := time.Now()
	zktest.Eventually(t, func() bool { return time.Since(made) > 3*time.Second }, "the bunks too old")
	young, another := s.given("bunk")
	if s.backing(old).ID == s.backing(young).ID {
		t.Error("a node on a backing node that is too old")
	}
	s.back(held)
	s.back(another)
	s.released("slots", "bunks")
	if took := time.Since(begun); took < 6*time.Second {
		t.Errorf("all are gone after %s", took)
	}
}

// Mistake: a backing node that stays when its provider, or the one whose nodes are on it, is
// drained; or that goes while it is used.
func TestSlotsAreDrained(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(slotted, "grace-time: 1", "grace-time: 3600"))
	s.image()
	s.launchTwo()
	_, slot := s.given("slot")
	_, bunk := s.given("bunk")
	drain := func(provider string) {
		t.Helper()
		if err := s.store.PauseProvider(t.Context(), zkmodel.ProviderPause{Provider: provider, Drain: true}); err != nil {
			t.Fatal(err)
		}
	}
	s.back(slot)
	zktest.Eventually(t, func() bool { return len(s.nodesAt("slots")) == 0 }, "the slot free")
	drain("cloud") // below the slots
	drain("bunks")
	s.emptied("cloud")
	if left := s.nodesAt("other"); len(left) != 1 || left[0].State != zkmodel.NodeInUse {
		t.Errorf("the backing node that is used: %+v", left)
	}
	s.back(bunk)
	s.released("slots", "bunks")
}

// Mistake: backing nodes of a provider that left the configuration that are taken for nobody's:
// jobs run on them, and it may come back.
func TestProviderOfSlotsLeavesTheConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	with := s.launch(named("nl01"))
	child, job := s.given("slot")
	_, bunk := s.given("bunk")
	backing := s.backing(child)
	with.stop()
	whole := s.config
	s.config = s.only("cloud", "other", "bunks")
	without := s.launch(named("nl02"))
	s.back(job)
	s.back(bunk)
	zktest.Eventually(t, func() bool { return len(s.nodesAt("other")) == 0 }, "the other provider's backing node gone")
	if n := s.node(backing.ID); n.State != zkmodel.NodeInUse || n.Stat.Mzxid != backing.Stat.Mzxid {
		t.Errorf("the backing node was touched: %+v", n)
	}
	without.stop()
	s.config = whole
	s.launch(named("nl03"))
	s.released("slots", "bunks")
}

// Mistake: a request for a backing node of a provider that left the configuration meanwhile, which
// keeps what was made for it for nobody, for ever.
func TestProviderOfSlotsLeavesWhileItAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	booting := s.stall()
	soon := func(d *launcher.Deps) { d.Resync = time.Second }
	with := s.launch(named("nl01"), soon)
	id := s.submit(wish("slot"))
	zktest.Await(t, booting, "a machine boots")
	if err := s.zuul.Cancel(id); err != nil {
		t.Fatal(err)
	}
	with.stop()
	for _, cloud := range s.clouds {
		cloud.SetHook(nil)
	}
	s.config = s.only("cloud", "other")
	s.launch(named("nl02"), soon)
	zktest.Eventually(t, func() bool { return len(s.requests()) == 0 }, "its request gone")
	zktest.Eventually(t, func() bool {
		nodes := s.nodesAt("cloud")
		return len(nodes) == 1 && nodes[0].State == zkmodel.NodeReady && nodes[0].AllocatedTo == ""
	}, "its node free for others")
}

// Mistake: a backing node that does not answer, or is another machine by now, that is given to
// each new node in turn; with launchers that scan.
func TestSlotsOnABackingNodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(slotted, "  - name: slots\n    driver: metastatic\n", "  - name: slots\n    driver: metastatic\n    boot-timeout: 1\n", 1))
	s.image()
	for i := range s.config.Providers {
		for j := range s.config.Providers[i].Pools {
			if s.config.Providers[i].Name == "slots" {
				s.config.Providers[i].Pools[j].HostKeyChecking = true
			}
		}
	}
	machine := sshd.Start(t, 0)
	changed, children := s.nodepools(2, false, zkmodel.NodeInUse)
	s.rewrite(changed, func(n *zkmodel.Node) {
		n.InterfaceIP, n.ConnectionType, n.ConnectionPort = "127.0.0.1", "ssh", zkmodel.IntValue(machine.Port)
		n.HostKeys, n.Attributes = zkmodel.Strings{"ssh-ed25519 another"}, zkmodel.ObjectValue(map[string]any{"rack": "burnt"})
	})
	s.launchTwo()
	zktest.Eventually(t, func() bool {
		names, err := s.store.Session().Children(t.Context(), zkmodel.BackingFolder("slots"))
		return err == nil && len(names) == 1
	}, "the backing node taken over")
	for range 2 {
		child, _ := s.given("slot")
		if s.backing(child).ID == changed {
			t.Error("a node on another machine")
		}
		if text, _ := child.Attributes.MarshalJSON(); strings.Contains(string(text), "burnt") {
			t.Errorf("what the first attempt stood on is in the attributes: %s", text)
		}
	}
	zktest.Eventually(t, func() bool { said, _ := s.node(changed).Backs(); return said.Failed }, "that said in its record")
	if n := s.node(children[0]); n.State != zkmodel.NodeInUse {
		t.Errorf("the job on it is %s", n.State)
	}
	s.unlock(children[0])
	zktest.Eventually(t, func() bool { _, err := s.store.Node(t.Context(), changed); return errors.Is(err, zkmodel.ErrNotFound) }, "it is given back")
}

// Keys of a backing node are scanned once, when it is launched: its slots have them. Mistake: a scan
// for each slot, which costs each job its time, and a machine that is busy with jobs its sessions.
func TestHostKeysOfABackingNodeAreReadOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	})
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		listening.Wait()
	}()
	backing, _ := s.nodepools(2, false)
	s.rewrite(backing, func(n *zkmodel.Node) {
		n.InterfaceIP, n.ConnectionType, n.ConnectionPort = "127.0.0.1", "ssh", zkmodel.IntValue(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it is
		n.HostKeys = zkmodel.Strings{"ssh-ed25519 A", "ssh-rsa B"}
	})
	s.launchTwo()
	zktest.Eventually(t, func() bool {
		names, err := s.store.Session().Children(t.Context(), zkmodel.BackingFolder("slots"))
		return err == nil && len(names) == 1
	}, "the backing node taken over")
	for range 2 {
		child, _ := s.given("slot")
		if on, _ := child.OnSlot(); on.Backing != backing || !slices.Equal(child.HostKeys, []string{"ssh-ed25519 A", "ssh-rsa B"}) {
			t.Errorf("on %s with the keys %v", on.Backing, child.HostKeys)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the machine was asked %d times", n)
	}
}

// What the configuration says of slots and of the backing label counts for new backing nodes; those
// that are there keep what they have. Mistake: jobs that lose their slots, or slots that two have.
func TestSlotsAreConfiguredAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	before := s.launch(named("nl01"))
	first, job := s.given("slot")
	before.stop()
	file := filepath.Join(t.TempDir(), "other.yaml")
	anew := strings.Replace(slotted, "{name: slot, backing-label: large, max-parallel-jobs: 2,", "{name: slot, backing-label: tiny, max-parallel-jobs: 1,", 1)
	err := os.WriteFile(file, []byte(anew), 0o600)
	if err == nil {
		s.config, err = configs.Load(file, configs.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.launchTwo()
	second, another := s.given("slot")
	third, one := s.given("slot")
	old, now := s.backing(first), s.backing(third)
	if s.backing(second).ID != old.ID || now.ID == old.ID || now.Type[0] != "tiny" {
		t.Errorf("the second is on %s, the third on %s of label %v; the first is on %s", s.backing(second).ID, now.ID, now.Type, old.ID)
	}
	if said, _ := now.Backs(); said.Slots != 1 {
		t.Errorf("the new one says %+v", said)
	}
	for _, j := range [][]*zuul.Node{job, another, one} {
		s.back(j)
	}
	s.released("slots", "bunks")
}

// Mistake: launchers of ours that give slots beside a launcher of Nodepool's, which gives the same.
func TestSlotsAreLeftToNodepool(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	leave := s.foreignPool(zkmodel.Component{ID: "nodepool-1", ProviderName: "slots", PoolName: "main", Priority: 100, SupportedLabels: zkmodel.Strings{"slot"}})
	one := s.launch(named("nl01"))
	s.launch(named("nl02"))
	id := s.submit(wish("slot"))
	_, job := s.given("bunk") // another provider's are given
	zktest.Eventually(t, func() bool {
		told := one.Requests()
		return len(told) == 1 && strings.Contains(told[0].Reason, "Nodepool's launcher on foreign")
	}, "why it waits, as it is said")
	if n := len(s.nodesAt("slots")); n != 0 {
		t.Errorf("%d nodes of the provider are made", n)
	}
	leave()
	if out := s.wait(id); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
	s.back(job)
}

// Mistake: a backing node that is deleted under its jobs, or a record that nobody can decode, after
// which no slots are given any more, or slots on what is gone.
func TestSlotsBesideWhatIsBroken(t *testing.T) {
	t.Parallel()
	s := newSite(t, slotted)
	s.image()
	s.launchTwo()
	first, job := s.given("slot")
	gone := s.backing(first)
	s.write(zkmodel.BackingFolder("slots")+"/bad", "{}")
	s.unlock(gone.ID) // by hand: a launcher of its provider deletes it, as nobody has it
	zktest.Eventually(t, func() bool { _, err := s.store.Node(t.Context(), gone.ID); return errors.Is(err, zkmodel.ErrNotFound) }, "the backing node gone")
	second, another := s.given("slot")
	if s.backing(second).ID == gone.ID {
		t.Error("a node on what is gone")
	}
	s.back(job)
	s.back(another)
	zktest.Eventually(t, func() bool {
		names, err := s.store.Session().Children(t.Context(), zkmodel.BackingFolder("slots"))
		return err == nil && len(names) == 1 && names[0] == "bad"
	}, "but for what cannot be decoded nothing is known")
	s.eventuallyEmpty()
}

// Mistake: labels of two launchers' configurations, each backed by nodes of the other, that ask for
// nodes without end.
func TestBackingLabelsThatLeadBackOverTwoConfigurations(t *testing.T) {
	t.Parallel()
	configured := func(provider, label, backing string) string {
		return fmt.Sprintf(`
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: %s}]
providers:
  - name: %s
    driver: metastatic
    launch-retries: 1
    pools: [{name: main, labels: [{name: %s, backing-label: %s}]}]
`, label, provider, label, backing)
	}
	s := newSite(t, configured("eggs", "egg", "hen"))
	s.launch(named("nl01"))
	file := filepath.Join(t.TempDir(), "other.yaml")
	err := os.WriteFile(file, []byte(configured("hens", "hen", "egg")), 0o600)
	if err == nil {
		s.config, err = configs.Load(file, configs.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.launch(named("nl02"))
	zktest.Eventually(t, func() bool { return len(s.pools()) == 2 }, "both registered")
	out := s.wait(s.submit(wish("egg")))
	if out.State != "failed" || !strings.Contains(out.Reason, "leads back to itself, over configurations of several launchers (egg, hen, egg)") {
		t.Errorf("%+v", out)
	}
}
