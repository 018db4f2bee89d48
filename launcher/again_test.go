package launcher_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// After ZooKeeper went back in time node ids come again. Machines that carry them and
// are in use are handed out to nobody else; they are leaks, as their records are gone.
func TestNodeIDsComeAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	first := s.launch()
	var before []string
	for range 2 {
		out := s.wait(s.submit(wish("small")))
		if _, err := s.zuul.Accept(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		before = append(before, s.node(out.Nodes[0]).ExternalID.Text())
	}
	first.stop()
	for _, part := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot} {
		if err := s.store.Session().DeleteTree(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if err := s.store.Session().EnsurePath(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	s.launch(func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond })
	for i := range 2 {
		out := s.wait(s.submit(wish("small")))
		if out.State != "fulfilled" || out.Nodes[0] != nodeID(i) {
			t.Fatalf("%+v, want the id %s again", out, nodeID(i))
		}
		if id := s.node(out.Nodes[0]).ExternalID.Text(); slices.Contains(before, id) {
			t.Errorf("node %s is machine %s, which is in use", out.Nodes[0], id)
		}
	}
	zktest.Eventually(t, func() bool {
		_, machines := s.world()
		return len(machines) == 2 && !machines[before[0]] && !machines[before[1]]
	}, "machines that no record made to go")
	if states, _ := s.world(); len(states) != 2 {
		t.Errorf("nodes %v", states)
	}
}

// nodeID is the id of a node by its number.
func nodeID(n int) string { return []string{"0000000000", "0000000001"}[n] }

// nodepoolHold does what `nodepool hold` does: it reads a node and writes it back,
// with the keys that it knows.
const nodepoolHold = `
import json
known = "state state_time cloud provider pool type allocated_to az region public_ipv4 private_ipv4 public_ipv6 host_id interface_ip connection_port ssh_port image_id launcher created_time external_id hostname comment user_data hold_job host_keys username connection_type shell_type hold_expiration resources slot attributes python_path tenant_name driver_data requestor".split()
path = hear()
lock = zk.Lock(path + "/lock")
lock.acquire()
data, stat = zk.get(path)
node = {k: v for k, v in json.loads(data).items() if k in known}
node["state"], node["comment"] = "hold", "by an operator"
zk.set(path, json.dumps(node).encode())
lock.release()
say("held")
hear()
`

// A record that Nodepool rewrote has lost its launch id, and a machine of an older
// release never had one: both are their nodes' all the same.
func TestLaunchIDsThatAreMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	s.launch(func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond })
	ours := s.wait(s.submit(wish("small"))).Nodes[0]
	launch := s.node(ours).LaunchID
	nodepool := zktest.StartKazoo(t, zktest.Shared(t).Addr(), s.root, nodepoolHold)
	nodepool.Say(zkmodel.NodePath(ours))
	nodepool.Expect("held")
	older := s.orphan(zkmodel.NodeHold, nil)
	s.machine(older)
	var seen resyncs
	s.clouds["cloud"].SetHook(seen.hook)
	zktest.Eventually(t, func() bool { return seen.lists.Load() >= 4 }, "four searches for leaks")
	if n := s.machines("cloud"); n != 2 {
		t.Errorf("%d machines are left", n)
	}
	n := s.node(ours)
	if n.LaunchID != "" || n.State != zkmodel.NodeHold {
		t.Fatalf("not rewritten: %+v", n)
	}
	if known, err := s.store.LaunchOf(t.Context(), n); err != nil || known != launch || launch == "" {
		t.Errorf("launch %q (%v), want %q", known, err, launch)
	}
	if known, err := s.store.LaunchOf(t.Context(), s.node(older)); err != nil || known != "" {
		t.Errorf("launch %q (%v) of one that has none", known, err)
	}
	// A machine that carries the node's id, and is another launch's, is not adopted.
	stray, err := s.clouds["cloud"].CreateNode(t.Context(), providers.NodeSpec{
		NodeID: ours, Pool: "main", Label: "small", ImageID: "image", Metadata: map[string]string{
			providers.MetaNode: ours, providers.MetaProvider: "cloud", providers.MetaLaunch: "of another time",
		},
	})
	if err != nil || stray == n.ExternalID.Text() {
		t.Fatalf("%s, %v", stray, err)
	}
	zktest.Eventually(t, func() bool { return s.machines("cloud") == 2 }, "the stray machine to go")
	if _, machines := s.world(); !machines[n.ExternalID.Text()] {
		t.Error("the wrong one is gone")
	}
}

// The launcher was killed before the machine was made, and the image that it had chosen
// is gone: whoever goes on chooses again.
func TestLaunchThatGoesOnChoosesAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	old := s.image()
	reached := make(chan struct{}, 10)
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpCreate || c.Done {
			return nil
		}
		reached <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	first := s.launch()
	id := s.submit(zuul.Wish{Labels: []string{"small"}})
	zktest.Await(t, reached, "a machine is to be made")
	first.client.Close()
	s.clouds["cloud"].SetHook(nil)
	s.image()
	newest := s.image()
	if err := s.store.Session().DeleteTree(t.Context(), old.Path()); err != nil {
		t.Fatal(err)
	}
	s.launch()
	out := s.wait(id)
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	key, err := zkmodel.ParseUploadPath(s.node(out.Nodes[0]).ImageID)
	if err != nil || key.Build != newest.ID {
		t.Errorf("booted from %+v (%v), want build %s", key, err, newest.ID)
	}
}
