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
// have, or whose nodes are no slots any more, and that no launcher has either: nobody gives them back.
func (d *doctor) backing(ctx context.Context, s *recipe.Session, cfg *configs.Config) {
	store := zkmodel.NewStore(s, d.now)
	nodes, err := store.Nodes(ctx)
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
		if hasNoSlots(cfg, provider) != "" {
			left[provider] = append(left[provider], n.ID)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(left)) {
		if _, here := cfg.Provider(provider); !here {
			if served, err := store.ServingNodes(ctx, provider); err == nil && len(served) > 0 {
				delete(left, provider) // by a launcher with another configuration
				continue
			}
		}
		slices.Sort(left[provider])
		d.warn("backing nodes", "put the provider back, and drain it before it goes; or give them back with erase PROVIDER, which refuses while a slot is used",
			"provider %s %s, and nodes are locked for its slots: %s", provider, hasNoSlots(cfg, provider), strings.Join(left[provider], ", "))
	}
	if kept > 0 && len(left) == 0 {
		d.good("backing nodes", "%d nodes are kept for slots, all of providers that are configured or served", kept)
	}
}

// hasNoSlots says why no launcher with a configuration has backing nodes of a provider; "" when
// one may, also where a mistake leaves the provider out for now.
func hasNoSlots(cfg *configs.Config, provider string) string {
	names, _ := cfg.ProviderNames()
	switch p, here := cfg.Provider(provider); {
	case here && p.BackingLabels() == nil:
		return "has no slots in this configuration"
	case !here && !slices.Contains(names, provider):
		return "is not in this configuration"
	}
	return ""
}
