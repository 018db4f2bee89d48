package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// list is a cloud that lists machines.
type list []providers.NodeInfo

func (l list) ListNodes(context.Context) ([]providers.NodeInfo, error) { return l, nil }

func (l *list) add(id, node, provider, site, launch string) {
	*l = append(*l, providers.NodeInfo{ExternalID: id, Metadata: map[string]string{
		providers.MetaNode: node, providers.MetaProvider: provider, providers.MetaSite: site, providers.MetaLaunch: launch,
	}})
}

// Mistake: a machine taken for a node's that is another node's, another provider's of the
// same cloud, another installation's or an earlier launch's; and a search that takes
// records that cannot be read for a node without a launch.
func TestMachinesOfANode(t *testing.T) {
	var l list
	l.add("mine", "7", "p", "site", "x")
	l.add("unmarked", "7", "p", "", "")
	l.add("node", "8", "p", "site", "x")
	l.add("provider", "7", "q", "site", "x")
	l.add("site", "7", "p", "elsewhere", "x")
	l.add("launch", "7", "p", "site", "y")
	l.add("part", "7", "p", "site", "x")
	l[len(l)-1].Part = true // a port without a server is no machine
	launch, failed := "x", error(nil)
	f := Finder{Site: "site", LaunchOf: func(context.Context, *zkmodel.Node) (string, error) { return launch, failed }}
	n := &zkmodel.Node{ID: "7", Provider: "p"}
	ids, err := f.MachinesOf(t.Context(), l, n)
	if err != nil || !slices.Equal(ids, []string{"mine", "unmarked"}) {
		t.Errorf("%q %v", ids, err)
	}
	launch = "" // as Nodepool's
	if ids, err = f.MachinesOf(t.Context(), l, n); err != nil || !slices.Equal(ids, []string{"mine", "unmarked", "launch"}) {
		t.Errorf("without a launch id: %q %v", ids, err)
	}
	failed = errors.New("unreadable")
	if ids, err = f.MachinesOf(t.Context(), l, n); !errors.Is(err, failed) || len(ids) > 0 {
		t.Errorf("%q %v", ids, err)
	}
}

// Mistake: a place that is kept for a machine for longer than a cloud takes, as a clock
// was early; or given up at once.
func TestHowLongAMachineMayCome(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := Finder{Now: func() time.Time { return now }}
	for name, c := range map[string]struct{ asked, want time.Duration }{
		"just asked": {0, time.Minute}, "a while ago": {-20 * time.Second, 40 * time.Second},
		"long ago": {-time.Hour, time.Minute - time.Hour}, "by an early clock": {time.Hour, time.Minute},
	} {
		n := &zkmodel.Node{Asked: zkmodel.EpochOf(now.Add(c.asked))}
		if got := f.Left(n, time.Minute); got.Round(time.Millisecond) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := f.Left(&zkmodel.Node{}, time.Minute); got > 0 {
		t.Errorf("never asked: %s", got)
	}
}
