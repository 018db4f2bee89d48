package launcher_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// The records of two launchers name, between them, all that one of them does for all, each
// once; when one is gone, without a word, the other's names it all, and what it had taken
// over since then. Catches: a share that nobody, or two, claim to have; a record that is
// not written again after a change.
func TestSharesAreNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(beside(withStock), "{name: tiny}", "{name: tiny, min-ready: 2}", 1))
	s.image()
	figures := map[string]*prometheus.Registry{"nl01": prometheus.NewRegistry(), "nl02": prometheus.NewRegistry()}
	launch := func(host string) *running {
		return s.launch(named(host), func(d *launcher.Deps) { d.Registerer = figures[host] })
	}
	lost := launch("nl01")
	launch("nl02")
	want := []string{
		"duties/labels/small", "duties/labels/tiny", "duties/providers/cloud", "duties/providers/other",
		"elections/offers", "elections/tidy",
	}
	// named are the shares that all name, sorted, and since when each host has its own.
	named := func() (hosts map[string]map[string]zkmodel.Epoch, shares []string) {
		list, err := s.store.Daemons(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hosts = map[string]map[string]zkmodel.Epoch{}
		for _, d := range list {
			hosts[d.Hostname] = d.Shares
			shares = append(shares, slices.Collect(maps.Keys(d.Shares))...)
		}
		slices.Sort(shares)
		return hosts, shares
	}
	var before, after map[string]map[string]zkmodel.Epoch
	zktest.Eventually(t, func() bool {
		var shares []string
		before, shares = named()
		return len(before) == 2 && slices.Equal(shares, want)
	}, "two launchers name all shares once")
	elected := func(host string) float64 { return gathered(t, figures[host])["elected"] }
	if sum := elected("nl01") + elected("nl02"); sum != 1 {
		t.Errorf("%.0f launchers are elected", sum)
	}
	lost.client.Close() // as if it had died: its session ends
	zktest.Eventually(t, func() bool {
		var shares []string
		after, shares = named()
		return len(after) == 1 && slices.Equal(shares, want)
	}, "the other one names them all")
	if elected("nl02") != 1 {
		t.Error("the other one is not elected")
	}
	for share, since := range before["nl01"] {
		if after["nl02"][share] <= since {
			t.Errorf("%s is nl02's since %f, and was nl01's since %f", share, after["nl02"][share], since)
		}
	}
	list, err := s.store.Daemons(t.Context())
	if err != nil || len(list) != 1 || list[0].Kind != zkmodel.KindLauncher {
		t.Errorf("left: %+v, %v", list, err)
	}
}
