package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

func TestHighestReadyImageIsBooted(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	want := s.build(zkmodel.BuildReady)
	s.upload(want, "cloud", zkmodel.UploadReady)
	upload := s.upload(want, "cloud", zkmodel.UploadReady)
	s.upload(want, "cloud", zkmodel.UploadFailed)
	s.upload(s.build(zkmodel.BuildReady), "cloud", zkmodel.UploadDeleting)
	s.upload(s.build(zkmodel.BuildDeleting), "cloud", zkmodel.UploadReady)
	s.launch()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if got := s.node(out.Nodes[0]).ImageID; got != upload.Path() {
		t.Errorf("booted from %s, want %s", got, upload.Path())
	}
	// A newer image serves the next node, without a restart.
	newer := s.image()
	zktest.Eventually(t, func() bool {
		out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}))
		return strings.HasPrefix(s.node(out.Nodes[0]).ImageID, newer.Path()+"/")
	}, "a node from the new image")
}

// A request fails once each pool of each launcher has said why it cannot serve it, and
// nobody else's does.
func TestDeclines(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.imageOf("fedora")
	undisturbed := s.neighbours()
	s.launchTwo()
	for name, tc := range map[string]struct {
		labels []string
		reason string
	}{
		"unknown label": {[]string{"moon"}, "no pool has the label moon"},
		"no image":      {[]string{"small"}, "no image for label small is ready in provider cloud"},
	} {
		t.Run(name, func(t *testing.T) {
			out := s.wait(s.submit(zuul.Wish{Labels: tc.labels}))
			if out.State != "failed" || out.Reason != tc.reason || len(out.DeclinedBy) != 4 {
				t.Errorf("%+v", out)
			}
			for _, pool := range []string{"nl01.example.org-PoolWorker.cloud-main-", "nl02.example.org-PoolWorker.other-main-"} {
				if !slices.ContainsFunc(out.DeclinedBy, func(id string) bool { return strings.HasPrefix(id, pool) }) {
					t.Errorf("%s… is not among %q", pool, out.DeclinedBy)
				}
			}
		})
	}
	undisturbed()
	s.imageOf("debian")
	zktest.Eventually(t, func() bool {
		return s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})).State == "fulfilled"
	}, "requests served once there is an image")
}

func TestLaunchIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	var waits atomic.Int32
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done && waits.Add(1) < 3 {
			return fmt.Errorf("%w: no valid host", providers.ErrNodeFailed)
		}
		return nil
	})
	s.launchTwo()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	if n := s.node(out.Nodes[0]); n.Attempt != 3 {
		t.Errorf("ready at attempt %d, want 3", n.Attempt)
	}
	if got := s.machines("cloud"); got != 1 {
		t.Errorf("%d machines for one node", got)
	}
	undisturbed()
}

func TestLaunchThatFailsIsDeclinedAndCleaned(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpWait && !c.Done {
			return fmt.Errorf("%w: no valid host", providers.ErrNodeFailed)
		}
		return nil
	})
	s.launch()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "failed" || !strings.Contains(out.Reason, "no valid host") || len(out.DeclinedBy) != 1 {
		t.Errorf("%+v", out)
	}
	s.eventuallyEmpty()
}

// What came up beside a failed sibling is free for others.
func TestSiblingsOfAFailedNodeAreFree(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	var failing atomic.Value
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done {
			failing.CompareAndSwap(nil, c.ID)
			if failing.Load() == c.ID {
				return fmt.Errorf("%w: bad luck", providers.ErrTransient)
			}
		}
		return nil
	})
	first := s.launch()
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small", "small"}})); out.State != "failed" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool {
		nodes := s.nodesAt("cloud")
		return len(nodes) == 1 && nodes[0].State == zkmodel.NodeReady && nodes[0].AllocatedTo == "" && !nodes[0].Locked
	}, "one free node left")
	undisturbed()
	// Another launcher gives it away; the first one may not see yet that it is free.
	first.stop()
	s.launch(named("nl02"))
	free := s.nodesAt("cloud")[0].ID
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); !slices.Equal(out.Nodes, []string{free}) {
		t.Errorf("%+v, want the free node %s", out, free)
	}
}

func TestRequestsBeyondTheQuotaWait(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool)) // max-servers 5
	s.image()
	undisturbed := s.neighbours()
	s.launchTwo()
	ids := make([]string, 8)
	for i := range ids {
		ids[i] = s.submit(zuul.Wish{Labels: []string{"small"}})
	}
	for _, id := range ids[:5] {
		s.wait(id)
		if got := s.machines("cloud"); got > 5 {
			t.Fatalf("%d machines with max-servers 5", got)
		}
	}
	for _, id := range ids[5:] {
		r, err := s.store.Request(t.Context(), id)
		if err != nil || r.State != zkmodel.RequestRequested {
			t.Errorf("request %s is %+v (%v), want it to wait", id, r, err)
		}
	}
	undisturbed() // the other pool serves meanwhile
	// Each node that is given back lets the next one in.
	for i, id := range ids[5:] {
		out := s.wait(ids[i])
		nodes, err := s.zuul.Accept(t.Context(), out)
		if err = errors.Join(err, s.zuul.Return(nodes...)); err != nil {
			t.Fatal(err)
		}
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
}

// A cloud that is fuller than we think lets requests wait, not fail.
func TestCloudThatRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	var creates atomic.Int32
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done && creates.Add(1) == 1 {
			return fmt.Errorf("%w: instances", providers.ErrQuota)
		}
		return nil
	})
	s.launchTwo()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "fulfilled" || len(out.DeclinedBy) != 0 {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 1 }, "the aborted node gone")
	undisturbed()
}

// Zuul changes its mind about what is urgent while requests wait for room.
func TestRevisedPriorityCounts(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	s.launchTwo()
	var first []zuul.Outcome
	for range 5 { // as many as there is room for
		first = append(first, s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})))
	}
	early, late := s.submit(zuul.Wish{Labels: []string{"small"}}), s.submit(zuul.Wish{Labels: []string{"small"}})
	if err := s.zuul.Revise(t.Context(), early, 10); err != nil {
		t.Fatal(err)
	}
	nodes, err := s.zuul.Accept(t.Context(), first[0])
	if err = errors.Join(err, s.zuul.Return(nodes...)); err != nil {
		t.Fatal(err)
	}
	if out := s.wait(late); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
	if r, err := s.store.Request(t.Context(), early); err != nil || r.State != zkmodel.RequestRequested {
		t.Errorf("the request that became less urgent is %s (%v)", r.State, err)
	}
	undisturbed()
}

// The cloud has room for one node, so that a launcher which does not see yet that it is free
// cannot launch another.
func TestCancelledRequestLeavesItsNodesForOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(onePool, "max-servers: 5", "max-servers: 1", 1))
	s.image()
	booting, open := s.gate()
	s.launch()
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	zktest.Await(t, booting, "a machine boots")
	if err := s.zuul.Cancel(id); err != nil {
		t.Fatal(err)
	}
	open()
	zktest.Eventually(t, func() bool {
		nodes := s.nodes()
		return len(nodes) == 1 && nodes[0].State == zkmodel.NodeReady && nodes[0].AllocatedTo == "" && !nodes[0].Locked
	}, "a free node")
	free := s.nodes()[0].ID
	if out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}})); !slices.Equal(out.Nodes, []string{free}) {
		t.Errorf("served with %v, want the free node %s", out.Nodes, free)
	}
}

func TestRequestThatVanishesFulfilledLeavesItsNodesForOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if len(out.Nodes) != 1 {
		t.Fatalf("%+v", out)
	}
	free := out.Nodes[0]
	if err := s.zuul.Cancel(out.ID); err != nil {
		t.Fatal(err)
	}
	out = s.wait(s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}))
	if slices.Contains(out.Nodes, free) {
		t.Errorf("a request without reuse got the old node %s", free)
	}
	zktest.Eventually(t, func() bool { n := s.node(free); return n.AllocatedTo == "" }, "the node free again")
}

// nodes lists what is in the tree.
func (s *site) nodes() []*zkmodel.Node {
	s.t.Helper()
	nodes, err := s.store.Nodes(context.WithoutCancel(s.t.Context()))
	if err != nil {
		s.t.Fatal(err)
	}
	return nodes
}

// eventuallyEmpty waits until neither tree nor clouds hold a node.
func (s *site) eventuallyEmpty() {
	s.t.Helper()
	zktest.Eventually(s.t, func() bool { return len(s.nodes()) == 0 }, "no node in the tree")
	for name := range s.clouds {
		if got := s.machines(name); got != 0 {
			s.t.Errorf("%d machines are left in %s", got, name)
		}
	}
}

// emptied waits until neither tree nor cloud hold a node of a provider.
func (s *site) emptied(provider string) {
	s.t.Helper()
	zktest.Eventually(s.t, func() bool { return len(s.nodesAt(provider)) == 0 }, "no node of %s in the tree", provider)
	if s.clouds[provider] == nil {
		return // its nodes are slots
	}
	if got := s.machines(provider); got != 0 {
		s.t.Errorf("%d machines are left in %s", got, provider)
	}
}

// A build that does not boot is passed over for the one before, by all launchers, and
// marked; in the provider where it boots it is not.
func TestSuspectImage(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	good := s.image()
	undisturbed := s.neighbours()
	bad := s.build(zkmodel.BuildReady)
	upload, healthy := s.upload(bad, "cloud", zkmodel.UploadReady), s.upload(bad, "other", zkmodel.UploadReady)
	var broken sync.Map // machines of the bad build
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		switch {
		case c.Op == fake.OpCreate && !c.Done:
			n, err := s.store.Node(ctx, c.ID)
			if err == nil && n.ImageID == upload.Path() {
				broken.Store(c.ID, true)
			}
		case c.Op == fake.OpWait && !c.Done:
			list, err := s.clouds["cloud"].ListNodes(ctx)
			if err != nil {
				return err
			}
			for _, m := range list {
				if _, is := broken.Load(m.Metadata[providers.MetaNode]); is && m.ExternalID == c.ID {
					broken.Delete(m.Metadata[providers.MetaNode])
					return fmt.Errorf("%w: kernel panic", providers.ErrNodeFailed)
				}
			}
		}
		return nil
	})
	s.launchTwo()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	if n := s.node(out.Nodes[0]); !strings.HasPrefix(n.ImageID, good.Path()+"/") || n.Attempt != 4 {
		t.Errorf("booted from %s at attempt %d, want the build before at attempt 4", n.ImageID, n.Attempt)
	}
	zktest.Eventually(t, func() bool {
		u, err := s.store.Upload(t.Context(), upload.UploadKey)
		return err == nil && strings.Contains(u.Suspect, "failed to boot 3 times")
	}, "the upload marked as suspect")
	// From now on the good one is the first choice, whichever launcher serves.
	for range 3 {
		out = s.wait(s.submit(zuul.Wish{Labels: []string{"small"}, Fresh: true}))
		if n := s.node(out.Nodes[0]); !strings.HasPrefix(n.ImageID, good.Path()+"/") || n.Attempt != 1 {
			t.Errorf("booted from %s at attempt %d", n.ImageID, n.Attempt)
		}
	}
	out = s.wait(s.submit(wish("mini")))
	if n := s.node(out.Nodes[0]); n.ImageID != healthy.Path() {
		t.Errorf("the other provider booted from %s, want %s", n.ImageID, healthy.Path())
	}
	if nodes, err := s.zuul.Accept(t.Context(), out); err != nil || s.zuul.Return(nodes...) != nil {
		t.Fatal(err)
	}
	undisturbed()
}
