package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// backing looks for nodes that are kept for slots of a provider that the configuration does not
// have: no launcher gives them back.
func (d *doctor) backing(ctx context.Context, s *recipe.Session, cfg *configs.Config) {
	nodes, err := zkmodel.NewStore(s, d.now).Nodes(ctx)
	if err != nil {
		d.fault("backing nodes", "look at the log of the ZooKeeper servers", "%v", err)
		return
	}
	left := map[string][]string{} // by provider
	kept := 0
	for _, n := range nodes {
		provider := n.BacksFor()
		if provider == "" || n.State != zkmodel.NodeInUse {
			continue
		}
		kept++
		if _, configured := cfg.Provider(provider); !configured {
			left[provider] = append(left[provider], n.ID)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(left)) {
		slices.Sort(left[provider])
		d.warn("backing nodes", "leave it to the launcher that has it; if none has, give them back with erase PROVIDER, which refuses while a slot is used",
			"provider %s is not in this configuration, and nodes are locked for its slots: %s", provider, strings.Join(left[provider], ", "))
	}
	if kept > 0 && len(left) == 0 {
		d.good("backing nodes", "%d nodes are kept for slots, all of providers that are configured", kept)
	}
}
