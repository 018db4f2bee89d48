package launcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/zkmodel"
)

// Hosts whose clocks are wrong serve like others: what they compare with the
// tree's times is the tree's time.
func TestClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"late": -10 * time.Minute, "early": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, onePool)
			s.image()
			s.launch(func(d *launcher.Deps) { d.Now = func() time.Time { return time.Now().Add(off) } })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 3 { // the last ones in the room of the first
				err := s.zuul.Run(ctx, wish("small", "small", "large"), nil)
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.zuul.WaitGone(ctx, s.orphan(zkmodel.NodeInUse, nil)); err != nil {
				t.Error(err)
			}
			s.eventuallyEmpty()
		})
	}
}

// A provider that is about to be taken out of the configuration has no pools any
// more; what is left of its nodes is deleted all the same.
func TestProviderWithoutPools(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	s.config.Providers[0].Pools = nil
	id := s.orphan(zkmodel.NodeUsed, nil)
	s.machine(id)
	s.launchTwo()
	s.emptied("cloud")
	undisturbed()
}

// Nodes of a provider that is not in the configuration are nobody's to touch:
// their machines cannot be reached.
func TestNodesOfUnknownProviders(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	foreign := s.orphan(zkmodel.NodeUsed, func(n *zkmodel.Node) { n.Provider = "elsewhere" })
	ours := s.orphan(zkmodel.NodeUsed, nil)
	s.launch()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, ours); err != nil {
		t.Fatal(err)
	}
	if n := s.node(foreign); n.State != zkmodel.NodeUsed || strings.Contains(n.Reason, "used") {
		t.Errorf("the foreign node is %s (%s)", n.State, n.Reason)
	}
}
