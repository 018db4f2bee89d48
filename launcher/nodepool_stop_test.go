package launcher_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// nodepoolID is the id of the Nodepool pool that launched nodepoolNode.
const nodepoolID = "localhost-PoolWorker.cloud-main-638c9a23a22b4e7da5d84025d42f8a83"

// asNodepool is a launcher of Nodepool, in Python with kazoo: it has a pool and two pending requests, one of which has
// a node. It stops in order: it unregisters, and some time later its locks end with its session.
const asNodepool = `
from kazoo.recipe.lock import Lock
pool = zk.create("/nodepool/components/pool/nl01", b'{"hostname": "nl01", "id": "` + nodepoolID + `", "kind": "pool", ' +
    b'"model_api": 0, "name": "main", "paused": false, "priority": 100, "provider_name": "cloud", "state": "running", ' +
    b'"supported_labels": ["small"], "version": "10.0"}', ephemeral=True, sequence=True, makepath=True)
for path in ("/nodepool/requests-lock/100-0000000000", "/nodepool/requests-lock/100-0000000001", "/nodepool/nodes/0000000000/lock"):
    assert Lock(zk, path).acquire(timeout=10)
request = b"""` + nodepoolRequest + `"""
zk.create("/nodepool/requests/100-0000000000", request, makepath=True)
zk.create("/nodepool/requests/100-0000000001", request, makepath=True)
say("serves")
hear()
zk.delete(pool)
say("unregistered")
hear()
`

// A Nodepool launcher that stops in order leaves its pending requests once it has unregistered its pools: they are
// taken over when their locks end, and not at the next search for orphans.
func TestNodepoolLauncherThatStopsInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	machine, err := s.clouds["cloud"].CreateNode(t.Context(), providers.NodeSpec{
		NodeID: "0000000000", Pool: "main", Label: "small", ImageID: "image-0000000001-0000000001",
		Metadata: map[string]string{providers.MetaNode: "0000000000", providers.MetaProvider: "cloud", providers.MetaPool: "main"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(zkmodel.NodePath("0000000000"), nodepoolNode[:len(nodepoolNode)-1]+`, "external_id": "`+machine+`"}`)
	nodepool := zktest.StartKazoo(t, zktest.Shared(t).Addr(), s.root, asNodepool)
	nodepool.Expect("serves")
	l := s.launch()
	began := time.Now()
	zktest.Eventually(t, func() bool {
		_, stat, err := s.store.Session().Get(t.Context(), zkmodel.ClockPath)
		return err == nil && stat.Mtime.Sub(began) > 4*time.Second
	}, "the launcher has searched for orphans for the second time; the next search comes after a minute")
	nodepool.Say("unregister")
	nodepool.Expect("unregistered")
	zktest.Eventually(t, func() bool { return len(s.pools()) == 1 }, "Nodepool's pool has left")
	if err := s.zuul.Run(t.Context(), wish("large"), nil); err != nil { // the launcher has seen that
		t.Fatal(err)
	}
	for _, id := range []string{"100-0000000000", "100-0000000001"} {
		if r, err := s.store.Request(t.Context(), id); err != nil || r.State != zkmodel.RequestPending {
			t.Fatalf("%+v (%v), want it left to the launcher that has it locked", r, err)
		}
	}
	nodepool.Say("stop")
	if out := s.wait("100-0000000000"); out.State != "fulfilled" || strings.Join(out.Nodes, " ") != "0000000000" {
		t.Errorf("%+v, want the node that Nodepool launched", out)
	}
	if out := s.wait("100-0000000001"); out.State != "fulfilled" || len(out.Nodes) != 1 {
		t.Errorf("%+v, want a node", out)
	}
	l.stop()
}

// A launcher of Nodepool unlocks a node whose launch has failed, and deletes it itself: no other launcher does as long as it is
// registered, unless it takes too long.
func TestNodesOfNodepoolThatIsRegisteredStay(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	leave := s.foreignPool(zkmodel.Component{ID: nodepoolID, ProviderName: "cloud", PoolName: "main", Priority: 100, SupportedLabels: zkmodel.Strings{"small"}})
	of := func(launcher string) string {
		return s.orphan(zkmodel.NodeBuilding, func(n *zkmodel.Node) { n.Launcher = launcher })
	}
	left, deleted := of(nodepoolID), of("gone")
	has := func(id string) bool {
		for _, n := range s.nodes() {
			if n.ID == id {
				return true
			}
		}
		return false
	}
	s.launch()
	zktest.Eventually(t, func() bool { return !has(deleted) }, "the node of a launcher that is gone is deleted")
	if !has(left) {
		t.Error("the node of a registered Nodepool launcher is deleted")
	}
	leave()
	zktest.Eventually(t, func() bool { return !has(left) }, "the node is deleted once Nodepool's launcher has left")
}
