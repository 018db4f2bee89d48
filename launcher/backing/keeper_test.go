package backing_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/backing"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// backed is a provider that keeps nothing.
type backed struct{}

func (backed) OnBacking(providers.Backing)                      {}
func (backed) Keeps(providers.BackingNode) time.Time            { return time.Time{} }
func (backed) Unreachable(context.Context, string, error) error { return nil }

// keep runs a keeper until the test ends, or what it returns is called.
func (m *member) keep(change ...func(k *backing.Keeper)) (stop func()) {
	m.t.Helper()
	k := &backing.Keeper{
		Known: m.Known, Backed: backed{}, Now: time.Now, Log: hclog.NewNullLogger(),
		Rival: func() string { return "" }, Wants: func(string) string { return "large" }, Frozen: func(string) string { return "" },
	}
	for _, c := range change {
		c(k)
	}
	tree := m.Tree.(*zkmodel.Mirror) //nolint:forcetypeassert // made so
	nodes, requests := tree.SubscribeNodes(), tree.SubscribeRequests()
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := k.Run(ctx, nodes, requests); err != nil {
			m.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		nodes.Close()
		requests.Close()
	})
	m.t.Cleanup(stop)
	return stop
}

// asked is the request for a backing node, once there is one.
func (m *member) asked(id string) *zkmodel.Request {
	m.t.Helper()
	var found *zkmodel.Request
	zktest.Eventually(m.t, func() bool {
		list, err := m.Store.Requests(m.t.Context())
		for _, r := range list {
			if err == nil && zkmodel.BackingOf(r) == id {
				found = r
			}
		}
		return found != nil
	}, "the request for backing node %s", id)
	return found
}

// rewrite writes a record as whoever has it would.
func (m *member) rewrite(path, text string) {
	m.t.Helper()
	if _, err := m.Store.Session().Set(m.t.Context(), path, []byte(text), recipe.AnyVersion); err != nil {
		m.t.Fatal(err)
	}
}

// Mistake: a node that is given back although its record was changed since that was decided.
func TestNodeIsGivenBackAsItWasListed(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	n := other.ready()
	other.add("7")
	b := other.records()[0]
	if err := other.Store.TakeBacking(t.Context(), b, n, ""); err != nil {
		t.Fatal(err)
	}
	b = other.records()[0]
	b.Slots[0] = zkmodel.BackingSlot{}
	if err := other.Store.SaveBacking(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var keeps atomic.Int32
	one.keep(func(k *backing.Keeper) {
		k.Backed = deciding(func() time.Time {
			if keeps.Add(1) > 1 {
				return time.Now().Add(time.Hour) // by what it says now
			}
			now, err := other.Store.Node(t.Context(), n.ID)
			if err == nil {
				now.Comment = "changed"
				var data []byte
				if data, err = now.Encode(); err == nil {
					_, err = other.Store.Session().Set(t.Context(), now.Path(), data, now.Stat.Version)
				}
			}
			if err != nil {
				t.Error(err)
			}
			return time.Time{}
		})
	})
	zktest.Eventually(t, func() bool { return keeps.Load() > 1 || len(other.records()) == 0 }, "it was decided again")
	if now, err := other.Store.Node(t.Context(), n.ID); err != nil || now.State != zkmodel.NodeInUse || now.Comment != "changed" {
		t.Errorf("it is %+v, %v", now, err)
	}
}

// deciding is a provider that decides how long a backing node is kept.
type deciding func() time.Time

func (deciding) OnBacking(providers.Backing)                      {}
func (d deciding) Keeps(providers.BackingNode) time.Time          { return d() }
func (deciding) Unreachable(context.Context, string, error) error { return nil }

// ready makes a node that is ready and free.
func (m *member) ready() *zkmodel.Node {
	m.t.Helper()
	n := &zkmodel.Node{Provider: "cloud", Type: zkmodel.Strings{"large"}}
	lock, err := m.Store.CreateNode(m.t.Context(), n)
	for _, to := range []zkmodel.NodeState{zkmodel.NodeBuilding, zkmodel.NodeReady} {
		if err == nil {
			err = zkmodel.Move(n, to, zkmodel.ByUs, zkmodel.EpochOf(time.Now()))
		}
	}
	if err == nil {
		err = m.Store.SaveNode(m.t.Context(), lock, n)
	}
	if err == nil {
		err = lock.Release(m.t.Context())
	}
	if err == nil {
		n, err = m.Store.Node(m.t.Context(), n.ID)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// Mistake: a write that a broken connection swallowed is taken for one that another has made
// needless: nothing changes then, and nobody writes it ever.
func TestWhatABrokenConnectionSwallowedIsWritten(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	one, other := newMember(t, proxy.Addr(), root), newMember(t, zktest.Shared(t).Addr(), root)
	other.add("7")
	stop := one.keep()
	r := other.asked(other.records()[0].ID)
	stop()
	other.rewrite(r.Path(), fmt.Sprintf(`{"state": "failed", "node_types": ["large"], "requestor": %q, "requestor_data": {"poolkeeper-backing": %q}}`,
		zkmodel.BackingOwner(slots), other.records()[0].ID))
	one.listed() // nothing is left to be told of
	var broken atomic.Bool
	var breaking sync.WaitGroup
	one.keep(func(k *backing.Keeper) {
		k.Rival = func() string { // it has looked, and writes next that its request has failed
			if broken.CompareAndSwap(false, true) {
				proxy.CutUp()
				breaking.Go(func() {
					pause, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // for the write to be on its way
					defer cancel()
					<-pause.Done()
					proxy.Break()
					proxy.Heal()
				})
			}
			return ""
		}
	})
	zktest.Eventually(t, func() bool { return strings.Contains(other.records()[0].Failed, r.ID) }, "that its request has failed, in the record")
	breaking.Wait()
}

// contend adds a contender that no session ends, as Nodepool's launcher does.
func (m *member) contend(node string) (path string) {
	m.t.Helper()
	dir := zkmodel.LockPath(zkmodel.NodePath(node))
	err := m.Store.Session().EnsurePath(m.t.Context(), dir)
	if err == nil {
		path, err = m.Store.Session().Create(m.t.Context(), recipe.LastingContender(dir), []byte(zkmodel.BackingOwner(slots)), recipe.Sequential)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return path
}

// passes count the passes of a keeper.
type passes struct{ atomic.Int32 }

// counted has a keeper count them.
func (p *passes) counted(k *backing.Keeper) {
	k.Rival = func() string {
		p.Add(1)
		return ""
	}
}

// another returns when the keeper has looked at what there is now, wholly.
func (p *passes) another(m *member) {
	m.t.Helper()
	for range 2 { // the first may have been under way
		was := p.Load()
		zktest.Eventually(m.t, func() bool {
			m.ready() // something that wakes it
			return p.Load() > was
		}, "another look")
	}
}

// Mistake: the lock of a launcher of Nodepool's that is between its two writes, as its pool is not
// registered yet, or no more, is ended by ours, so that two have the node.
func TestLockIsLeftWhenItStandsForASession(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	n := other.ready()
	other.rewrite(n.Path(), fmt.Sprintf(`{"state": "ready", "type": ["large"], "provider": "cloud", "requestor": %q, "allocated_to": "100-0000000042"}`, zkmodel.BackingOwner(slots)))
	first := other.contend(n.ID)
	var looks passes
	var ahead atomic.Int64
	one.keep(looks.counted, func(k *backing.Keeper) {
		k.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	locked := func() bool {
		t.Helper()
		contender, err := other.Store.BackingLock(t.Context(), slots, n.ID)
		if err != nil {
			t.Fatal(err)
		}
		return contender != ""
	}
	if looks.another(other); !locked() {
		t.Fatal("unlocked at first sight")
	}
	if err := other.Store.Session().Delete(t.Context(), first, recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	other.contend(n.ID)
	ahead.Add(int64(one.Store.Session().Timeout() + time.Second))
	if looks.another(other); !locked() {
		t.Fatal("unlocked for what another contender had left")
	}
	ahead.Add(int64(one.Store.Session().Timeout() + time.Second))
	other.ready()
	zktest.Eventually(t, func() bool { return !locked() }, "the lock ended")
}

// Mistake: a request that is deleted, with what boots for it, as the record that it is for was
// spoilt by hand and is mended a moment later.
func TestRequestOfABrokenRecordStays(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	other.add("7")
	stop := one.keep()
	b := other.records()[0]
	r := other.asked(b.ID)
	stop()
	other.rewrite(b.Path(), "{}")
	var looks passes
	one.keep(looks.counted)
	looks.another(other)
	if _, err := other.Store.Request(t.Context(), r.ID); err != nil {
		t.Errorf("beside a broken record: %v", err)
	}
}

// Mistake: a request that a person has spoilt, so that it is for a record that cannot be one, holds up the backing node
// of its node, and all others of the provider.
func TestSpoiltRequestHoldsUpNoBackingNode(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	for _, of := range []string{"slots/", "/", "..", "a//b"} {
		r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"slot"}, Requestor: zkmodel.BackingOwner(of), RequestorData: zkmodel.BackingMarkOf("../x")}
		if err := other.Store.CreateRequest(t.Context(), "200", r); err != nil {
			t.Fatal(err)
		}
		n := other.ready()
		other.rewrite(n.Path(), fmt.Sprintf(`{"state": "building", "type": ["slot"], "provider": %q, "allocated_to": %q}`, slots, r.ID))
		other.add(n.ID)
	}
	one.keep()
	for _, b := range other.records() {
		other.asked(b.ID)
	}
}

// Mistake: a label that a mistake leaves out of the configuration is taken for one that nobody wants: its backing nodes
// are given back, and its idle nodes are deleted for others.
func TestWhatIsLeftOutIsKept(t *testing.T) {
	t.Parallel()
	one, other := two(t)
	large := other.ready()
	other.add("7")
	b := other.records()[0]
	b.Slots = make([]zkmodel.BackingSlot, 2)
	if err := other.Store.TakeBacking(t.Context(), b, large, ""); err != nil {
		t.Fatal(err)
	}
	idle := other.ready()
	other.rewrite(idle.Path(), fmt.Sprintf(`{"state": "ready", "type": ["slot"], "provider": %q, "driver_data": {"backing_node": "of another", "slot": 0}}`, slots))
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"slot"}, Requestor: "zuul"}
	if err := other.Store.CreateRequest(t.Context(), "200", r); err != nil {
		t.Fatal(err)
	}
	other.rewrite(r.Path(), `{"state": "pending", "node_types": ["slot"], "requestor": "zuul"}`)
	waiting := other.ready()
	other.rewrite(waiting.Path(), fmt.Sprintf(`{"state": "building", "type": ["slot"], "provider": %q, "allocated_to": %q}`, slots, r.ID))
	other.add(waiting.ID)
	state := func(id string) zkmodel.NodeState {
		n, err := other.Store.Node(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return n.State
	}
	later := func(k *backing.Keeper) { k.Now = func() time.Time { return time.Now().Add(time.Minute) } }
	var looks passes
	stop := one.keep(looks.counted, later, func(k *backing.Keeper) { k.Frozen = func(string) string { return "a mistake" } })
	for _, b := range other.records() {
		if b.Node == "" {
			other.asked(b.ID)
		}
	}
	looks.another(other)
	stop()
	if is, was := state(large.ID), state(idle.ID); is != zkmodel.NodeInUse || was != zkmodel.NodeReady {
		t.Errorf("the backing node is %s, the idle node %s", is, was)
	}
	one.keep(later)
	zktest.Eventually(t, func() bool { return state(large.ID) == zkmodel.NodeUsed && state(idle.ID) == zkmodel.NodeDeleting }, "the end of both, as the file is mended")
}
