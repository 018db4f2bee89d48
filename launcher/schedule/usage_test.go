package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

var errUnreadable = errors.New("unreadable")

// anon is the record of a node that does not say what it takes.
func anon(provider, pool string, labels ...string) *zkmodel.Node {
	return &zkmodel.Node{ID: provider + "-" + pool, State: zkmodel.NodeInUse, Provider: provider, Pool: pool, Type: labels}
}

// A record that does not say what its machine takes counts as its label would take today, and what
// cannot be read counts everywhere, as much as the largest machine there; else a limit is exceeded.
func TestWhatNodesTake(t *testing.T) {
	small := Offer{Needs: providers.Resources{providers.Instances: 1, providers.RAM: 1}}
	large := Offer{Needs: providers.Resources{providers.Instances: 1, providers.RAM: 8}}
	pools := []*Pool{
		{Provider: "one", Name: "main", Offers: map[string]Offer{"l": large, "s": small, "untold": {}}},
		{Provider: "one", Name: "more", Offers: map[string]Offer{"s": small}},
		{Provider: "two", Name: "main", Offers: map[string]Offer{"s": small}},
	}
	told := anon("one", "main", "l")
	told.Resources = map[string]int{providers.Instances: 1, providers.RAM: 5}
	broken := anon("two", "main", "s")
	broken.Broken, broken.Resources = errUnreadable, map[string]int{providers.Instances: 50}
	left := anon("", "")
	left.Broken, left.Stat.Czxid = errUnreadable, 1 // a lock has left it, and it holds nothing
	u := newUsage([]*zkmodel.Node{
		anon("", ""), anon("one", "main", "l"), anon("one", "more", "s"), told, anon("one", "more", "gone", "s"), anon("one", "main", "untold"), broken, left,
	}, pools)
	want := map[PoolKey]providers.Resources{
		{"", ""}:        {providers.Instances: 1},
		{"one", "main"}: {providers.Instances: 3 + 1, providers.RAM: 8 + 5 + 8},
		{"one", "more"}: {providers.Instances: 2 + 1, providers.RAM: 1 + 1 + 1},
		{"two", "main"}: {providers.Instances: 1, providers.RAM: 1},
	}
	if diff := cmp.Diff(want, u.pools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	all := map[string]providers.Resources{
		"": {providers.Instances: 1}, "one": {providers.Instances: 5 + 1, providers.RAM: 15 + 8}, "two": {providers.Instances: 1, providers.RAM: 1},
	}
	if diff := cmp.Diff(all, u.providers); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	offers := map[PoolKey]map[string]Offer{{"one", "main"}: pools[0].Offers, {"one", "more"}: pools[1].Offers}
	taken := Taken([]*zkmodel.Node{anon("one", "main", "l"), told, anon("one", "more", "s"), anon("two", "main", "s"), broken}, offers)
	if diff := cmp.Diff(map[string]map[string]int{"one": {providers.Instances: 3, providers.RAM: 14}, "two": {providers.Instances: 1}}, taken); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

// The words tell of one resource, always the same, and of none that is not asked for: a limit that was
// lowered below what is used stops nobody who needs none of it.
func TestShortNamesOne(t *testing.T) {
	used := providers.Resources{providers.Cores: 5, providers.RAM: 5, providers.Instances: 5, providers.Volumes: 9}
	need := providers.Resources{providers.Cores: 1, providers.RAM: 1, providers.Instances: 1, providers.Volumes: 0}
	limits := providers.Resources{providers.Cores: 5, providers.RAM: 5, providers.Instances: 5, providers.Volumes: 2}
	for range 20 { // maps have any order
		if what, lacks := short(used, need, limits); !lacks || !strings.HasPrefix(what, providers.Cores+" 5 used, 1 needed, limit 5") {
			t.Fatalf("%q, %t", what, lacks)
		}
	}
	delete(need, providers.Cores)
	delete(need, providers.RAM)
	delete(need, providers.Instances)
	if what, lacks := short(used, need, limits); lacks {
		t.Errorf("lacks %s, of which it needs none", what)
	}
}

// Limits of tenants count nodes of tenants: no broken record, no machine that exists already, none without a tenant.
func TestTenantsHaveWhatTheirNodesTake(t *testing.T) {
	node := func(tenant string, change func(*zkmodel.Node)) *zkmodel.Node {
		n := aNode("1", zkmodel.NodeInUse, "a")
		n.TenantName = tenant
		change(n)
		return n
	}
	same := func(*zkmodel.Node) {}
	s := &Snapshot{
		Tenants: map[string]providers.Resources{"red": {}},
		Nodes: []*zkmodel.Node{
			node("red", same), node("blue", same), node("", same),
			node("red", func(n *zkmodel.Node) { n.Broken = errUnreadable }), node("red", func(n *zkmodel.Node) { n.Launcher = StaticLauncher }),
		},
	}
	one := providers.Resources{providers.Instances: 1, providers.RAM: 1024}
	if diff := cmp.Diff(map[string]providers.Resources{"red": one, "blue": one}, tenantUsage(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where a machine is that our records tell of decides whether a cloud that refused is full: one that was asked for a
// moment ago may yet come, one that was refused counts until all have heard of it, and what came is there until it is gone.
func TestUses(t *testing.T) {
	now := time.Unix(1000, 0)
	here := zkmodel.TextValue("id")
	for name, c := range map[string]struct {
		state      zkmodel.NodeState
		age        time.Duration
		id         zkmodel.Value
		late       bool
		held, wait int
	}{
		"asked for just now":              {state: zkmodel.NodeBuilding, wait: 1},
		"asked for long ago":              {state: zkmodel.NodeBuilding, age: flightTime, held: 1},
		"accepted":                        {state: zkmodel.NodeBuilding, id: here, held: 1},
		"accepted by one that refuses it": {state: zkmodel.NodeBuilding, id: here, late: true, wait: 1},
		"failed there":                    {state: zkmodel.NodeFailed, id: here, late: true, held: 1},
		"failed just now":                 {state: zkmodel.NodeFailed, wait: 1},
		"is deleted":                      {state: zkmodel.NodeDeleting, id: here, held: 1},
		"gone":                            {state: zkmodel.NodeDeleted, id: here},
		"refused just now":                {state: zkmodel.NodeAborted, wait: 1},
		"refused long ago":                {state: zkmodel.NodeAborted, age: flightTime},
		"in use":                          {state: zkmodel.NodeInUse, held: 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := aNode("7", c.state, "a")
			n.StateTime, n.ExternalID = zkmodel.EpochOf(now.Add(-c.age)), c.id
			broken, elsewhere, except := aNode("8", c.state, "a"), aNode("9", c.state, "a"), aNode("10", c.state, "a")
			broken.Broken, elsewhere.Provider = errUnreadable, "far"
			uses := Uses([]*zkmodel.Node{broken, elsewhere, except, n}, map[string]bool{"cloud": c.late}, now, except.ID)
			amount := func(count int) providers.Resources {
				if count == 0 {
					return providers.Resources{}
				}
				return providers.Resources{providers.Instances: 1, providers.RAM: 1024}
			}
			want := map[string]*lesson.Use{"cloud": {Held: amount(c.held), Flying: amount(c.wait), Launches: c.wait}}
			if diff := cmp.Diff(want, uses); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A limit of what no label takes was not set for the pool.
func TestHintIsOfWhatIsTaken(t *testing.T) {
	p := aPool(func(p *Pool) {
		p.Limits = providers.Resources{providers.Instances: 250}
		p.Offers = map[string]Offer{"a": {Needs: providers.Resources{providers.Instances: 1, providers.Volumes: 0}}}
	})
	if got := Hint(p, providers.Resources{providers.Volumes: -1}); got != nil {
		t.Errorf("a hint is taken from %v", got)
	}
}
