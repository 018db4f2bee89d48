package listing

import (
	"maps"
	"slices"

	"poolkeeper/zkmodel"
)

// Labels lists every label that a running pool serves: Nodepool's label-list.
// Details, and JSON, tell who serves it.
func Labels(pools []*zkmodel.Component) *Table {
	t := &Table{kind: "labels", columns: []column{
		{title: "Label", key: "label", by: ByLabel},
		{title: "Pools", key: "pools", detail: true},
		{title: "Launchers", key: "launchers", detail: true},
	}}
	type servers struct{ pools, launchers map[string]bool }
	labels := map[string]servers{}
	for _, c := range pools {
		for _, label := range c.SupportedLabels {
			by, ok := labels[label]
			if !ok {
				by = servers{map[string]bool{}, map[string]bool{}}
				labels[label] = by
			}
			by.pools[c.ProviderName+"-"+c.PoolName] = true
			by.launchers[c.Hostname] = true
		}
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		by := labels[label]
		t.rows = append(t.rows, []cell{
			text(label),
			list(slices.Sorted(maps.Keys(by.pools))),
			list(slices.Sorted(maps.Keys(by.launchers))),
		})
	}
	return t
}
