package launcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// The provider "other", with an image, labels and a pool of its own, which shares debian.
const otherProvider = `
  - name: other
    driver: fake
    cloud: fake
    diskimages: [{name: fedora}, {name: debian}]
    pools:
      - name: main
        max-servers: 5
        labels: [{name: tiny, diskimage: fedora, min-ram: 1024}, {name: mini, diskimage: debian, min-ram: 1024}]
`

// beside is a configuration of onePool's kind with the provider "other" in addition. What
// is done in one provider must not touch the other; a test with one provider cannot see
// that.
func beside(yaml string) string {
	yaml = strings.Replace(yaml, "{name: large}]", "{name: large}, {name: tiny}, {name: mini}]", 1)
	yaml = strings.Replace(yaml, "diskimages: [", "diskimages: [{name: fedora, elements: [fedora]}, ", 1)
	return yaml + otherProvider[1:]
}

// launchTwo starts two launchers that serve the same pools, on hosts of their own.
func (s *site) launchTwo() {
	s.t.Helper()
	s.launch(named("nl01"))
	s.launch(named("nl02"))
	pools := 0
	for _, p := range s.config.Providers {
		pools += 2 * len(p.Pools)
	}
	zktest.Eventually(s.t, func() bool { return len(s.pools()) == pools }, "%d pools registered", pools)
}

// nodesAt lists the nodes of a provider.
func (s *site) nodesAt(provider string) []*zkmodel.Node {
	s.t.Helper()
	return slices.DeleteFunc(s.nodes(), func(n *zkmodel.Node) bool { return n.Provider != provider })
}

// resident makes a node of "other" with its machine, before there is a launcher.
func (s *site) resident(state zkmodel.NodeState) *zkmodel.Node {
	s.t.Helper()
	ctx := s.t.Context()
	id := s.orphan(zkmodel.NodeTesting, func(n *zkmodel.Node) { n.Provider, n.Type = "other", zkmodel.Strings{"tiny"} })
	machine, err := s.clouds["other"].CreateNode(ctx, providers.NodeSpec{
		NodeID: id, Pool: "main", Label: "tiny", ImageID: "image",
		Metadata: map[string]string{providers.MetaNode: id, providers.MetaProvider: "other"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	n := s.node(id)
	n.State, n.ExternalID = state, zkmodel.TextValue(machine)
	data, err := n.Encode()
	if err == nil {
		_, err = s.store.Session().Set(ctx, n.Path(), data, n.Stat.Version)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.node(id)
}

// neighbours gives the provider "other" an idle and a held node, before there is a
// launcher. The function that it returns fails the test unless both are as they were, with
// their machines, and a request for a label of that provider is served; then it takes
// them away.
func (s *site) neighbours() (undisturbed func()) {
	s.t.Helper()
	kept := []*zkmodel.Node{s.resident(zkmodel.NodeReady), s.resident(zkmodel.NodeHold)}
	return func() {
		s.t.Helper()
		ctx := s.t.Context()
		err := s.zuul.Run(ctx, wish("tiny"), func(nodes []*zuul.Node) error {
			if at := nodes[0].Text("provider"); at != "other" {
				return fmt.Errorf("served by %s", at)
			}
			return nil
		})
		if err != nil {
			s.t.Errorf("a request for another provider: %v", err)
		}
		zktest.Eventually(s.t, func() bool { return len(s.nodesAt("other")) == len(kept) }, "no more than its own nodes at the other provider")
		machines, err := s.clouds["other"].ListNodes(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, n := range kept {
			if now, err := s.store.Node(ctx, n.ID); err != nil || now.Stat.Mzxid != n.Stat.Mzxid {
				s.t.Errorf("the %s node of another provider was touched: %+v (%v)", n.State, now, err)
			}
			has := func(m providers.NodeInfo) bool { return m.ExternalID == n.ExternalID.Text() }
			if !slices.ContainsFunc(machines, has) {
				s.t.Errorf("the machine of the %s node of another provider is gone", n.State)
			}
			if err := s.store.Session().DeleteTree(ctx, n.Path()); err != nil {
				s.t.Fatal(err)
			}
			if err := s.clouds["other"].DeleteNode(ctx, n.ExternalID.Text()); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// Requests for one label of a static pool do not wait behind those for another, however
// many these are and whoever serves them. Catches: a queue a pool.
func TestStaticLabelsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(twoSlots, "labels: [{name: iron}]", "labels: [{name: iron}, {name: brass}]", 1)+
		"          - {name: 127.0.0.2, labels: brass, username: op, connection-port: 2222, host-key-checking: false}\n")
	for _, host := range []string{"nl01", "nl02"} {
		s.launch(s.withStatic, named(host))
	}
	zktest.Eventually(t, func() bool { return s.free() == 3 }, "two slots and a machine registered")
	iron, brass := zuul.Wish{Labels: []string{"iron"}, Priority: 100}, zuul.Wish{Labels: []string{"brass"}, Priority: 300}
	taken := []zuul.Outcome{s.wait(s.submit(iron)), s.wait(s.submit(iron))}
	var waiting []string
	for range 4 {
		waiting = append(waiting, s.submit(iron))
	}
	for range 3 { // one after the other, on the one machine
		if err := s.zuul.Run(t.Context(), brass, nil); err != nil {
			t.Error(err)
		}
	}
	for _, id := range waiting {
		if r, err := s.store.Request(t.Context(), id); err != nil || r.State != zkmodel.RequestRequested {
			t.Errorf("request is %+v (%v), want it to wait for a slot", r, err)
		}
	}
	for _, out := range taken {
		nodes, err := s.zuul.Accept(t.Context(), out)
		if err == nil {
			err = s.zuul.Return(nodes...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	zktest.Eventually(t, func() bool {
		served := 0
		for _, id := range waiting {
			if r, err := s.store.Request(t.Context(), id); err == nil && r.State == zkmodel.RequestFulfilled {
				served++
			}
		}
		return served == len(taken)
	}, "as many are served as slots came free")
}
