package launcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// A provider that is paused gets no request, from neither of two launchers, not even with a
// node that is ready there: what both providers have is served by the other one, and what
// it alone has waits and says why. A drain deletes its idle nodes, and neither those that
// are given away nor the other provider's. Its nodes in use are deleted as ever, and with
// the pause all goes on. Catches: a pause that declines, so that requests fail; one that
// one launcher does not see; a drain that deletes what is used.
func TestPausedProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(beside(onePool), "labels: [{name: tiny,", "labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: tiny,", 1))
	s.image()
	s.launchTwo()
	op := operate.New(s.store, "anna@desk")
	used, err := s.zuul.Accept(t.Context(), s.wait(s.submit(wish("large"))))
	if err != nil {
		t.Fatal(err)
	}
	idle := s.orphan(zkmodel.NodeReady, nil)
	elsewhere := s.orphan(zkmodel.NodeReady, func(n *zkmodel.Node) { n.Provider, n.Type = "other", zkmodel.Strings{"mini"} })
	if _, err := op.PauseProvider(t.Context(), "cloud", "new switches", 0, false); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		told := 0
		for _, c := range s.components() {
			if c.ProviderName == "cloud" && c.Paused != nil && *c.Paused && strings.Contains(c.Reason, "anna@desk: new switches") {
				told++
			}
		}
		return told == 2
	}, "both pools say who has paused their provider")
	for range 6 {
		err := s.zuul.Run(t.Context(), zuul.Wish{Labels: []string{"small"}}, func(nodes []*zuul.Node) error {
			if by := nodes[0].Text("provider"); by != "other" {
				t.Errorf("a node of %s was given", by)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	waits := s.submit(zuul.Wish{Labels: []string{"large"}})
	if err := s.zuul.Return(used...); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 1 }, "what was used is deleted, and nothing is launched")
	if r := s.asked(waits); r.State != zkmodel.RequestRequested || len(r.DeclinedBy) > 0 {
		t.Errorf("the request is %s, declined by %v", r.State, r.DeclinedBy)
	}
	if _, err := op.PauseProvider(t.Context(), "cloud", "", 0, true); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 0 }, "node %s is deleted, which is idle", idle)
	if n := s.node(elsewhere); n.State != zkmodel.NodeReady {
		t.Errorf("node %s of the other provider is %s", n.ID, n.State)
	}
	if err := op.ResumeProvider(t.Context(), "cloud"); err != nil {
		t.Fatal(err)
	}
	if n := s.node(s.wait(waits).Nodes[0]); n.Provider != "cloud" {
		t.Errorf("launched in %s", n.Provider)
	}
}

// A pause ends by itself, by ZooKeeper's clock, and its record goes with it; one whose
// record cannot be read pauses all the same. Catches: a maintenance that is forgotten and
// keeps a provider out of service; a record of a later release that is taken for none.
func TestPauseEndsByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	op := operate.New(s.store, "anna@desk")
	if _, err := op.PauseProvider(t.Context(), "cloud", "", time.Hour, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Session().Create(t.Context(), zkmodel.PausePathOf("other"), []byte("{"), recipe.Persistent); err != nil {
		t.Fatal(err)
	}
	s.launchTwo()
	waits := []string{s.submit(wish("small")), s.submit(wish("tiny"))}
	zktest.Eventually(t, func() bool {
		return !slices.ContainsFunc(s.components(), func(c *zkmodel.Component) bool {
			return c.ProviderName == "cloud" != strings.Contains(c.Reason, "paused by anna@desk, until ") ||
				c.ProviderName == "other" != strings.Contains(c.Reason, "provider-resume removes it")
		})
	}, "all pools say that they are paused")
	if _, err := op.PauseProvider(t.Context(), "cloud", "", 300*time.Millisecond, false); err != nil {
		t.Fatal(err)
	}
	s.wait(waits[0])
	zktest.Eventually(t, func() bool {
		list, err := s.store.ProviderPauses(t.Context())
		return err == nil && len(list) == 1 && list[0].Provider == "other"
	}, "its record is gone")
	if r := s.asked(waits[1]); r.State != zkmodel.RequestRequested {
		t.Errorf("it is %s in a provider of which nobody can tell why it is paused", r.State)
	}
	if err := op.ResumeProvider(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	s.wait(waits[1])
}

// components are the pools of all launchers, as the tree has them.
func (s *site) components() []*zkmodel.Component {
	s.t.Helper()
	list, err := s.store.Components(s.t.Context(), zkmodel.KindPool)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// asked reads a request.
func (s *site) asked(id string) *zkmodel.Request {
	s.t.Helper()
	r, err := s.store.Request(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// A launch that fails in a provider that was paused meanwhile says nothing of the request: it
// is not declined and waits, or goes to another provider. Catches: a maintenance that fails
// the jobs whose nodes were booting when it began.
func TestLaunchFailsInAPausedProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	booting, down := make(chan struct{}, 10), make(chan struct{})
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpWait || c.Done {
			return nil
		}
		booting <- struct{}{}
		select {
		case <-down:
		case <-ctx.Done():
		}
		return errors.New("the switch is off")
	})
	s.launchTwo()
	op := operate.New(s.store, "anna@desk")
	waits := s.submit(wish("small"))
	zktest.Await(t, booting, "a machine boots")
	if _, err := op.PauseProvider(t.Context(), "cloud", "new switches", 0, false); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		return !slices.ContainsFunc(s.components(), func(c *zkmodel.Component) bool { return c.ProviderName == "cloud" && c.Reason == "" })
	}, "both launchers know")
	close(down)
	zktest.Eventually(t, func() bool { return len(s.nodesAt("cloud")) == 0 }, "the nodes that did not boot are gone")
	zktest.Eventually(t, func() bool { return s.asked(waits).State == zkmodel.RequestRequested }, "the request waits")
	if r := s.asked(waits); len(r.DeclinedBy) > 0 {
		t.Errorf("declined by %v: %s", r.DeclinedBy, r.Reason)
	}
	s.clouds["cloud"].SetHook(nil)
	if err := op.ResumeProvider(t.Context(), "cloud"); err != nil {
		t.Fatal(err)
	}
	s.wait(waits)
}
