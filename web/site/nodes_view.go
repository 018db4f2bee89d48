package site

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// nodeCount is how many nodes of a label a provider has, by state.
type nodeCount struct {
	Label, Provider string
	States          []layout.Badge // "3 ready"
}

// nodeView is one node.
type nodeView struct {
	ID             string
	State          layout.Badge
	Since          layout.When
	Locked         bool
	Labels         string
	Provider, Pool string
	Server         string // its name or id in the cloud
	Address        string
	Image          string
	AllocatedTo    string
	Reason         string // or the comment of who holds it
}

// viewNode shows a node.
func (s *snapshot) viewNode(n *zkmodel.Node) nodeView {
	v := nodeView{
		ID: n.ID, State: layout.StateBadge(n.State, n.Broken), Since: layout.Moment(listing.Changed(n.StateTime, n.Stat.Mtime), s.now),
		Locked: n.Locked, Labels: strings.Join(n.Type, ", "), Provider: n.Provider, Pool: n.Pool,
		Server:  cmp.Or(n.Hostname, n.ExternalID.Text()),
		Address: cmp.Or(n.InterfaceIP, n.PublicIPv4, n.PublicIPv6, n.PrivateIPv4),
		Image:   n.ImageID, AllocatedTo: n.AllocatedTo, Reason: listing.Words(": ", listing.Why(listing.Words("; ", n.Reason, listing.Undeleted(n.DeleteError)), n.Broken), n.Comment),
	}
	if port, ok := n.ConnectionPort.Int(); ok && v.Address != "" && port != 22 {
		v.Address = fmt.Sprintf("%s port %d", v.Address, port)
	}
	if key, err := zkmodel.ParseUploadPath(n.ImageID); err == nil {
		v.Image = key.Image + "-" + key.Build
	}
	return v
}

// countNodes counts by label and provider, and in these by state.
func countNodes(nodes []*zkmodel.Node) []nodeCount {
	type group struct{ label, provider string }
	counts := map[group]map[layout.Badge]int{}
	for _, n := range nodes {
		g := group{strings.Join(n.Type, ", "), n.Provider}
		if counts[g] == nil {
			counts[g] = map[layout.Badge]int{}
		}
		counts[g][layout.StateBadge(n.State, n.Broken)]++
	}
	list := make([]nodeCount, 0, len(counts))
	for g, states := range counts {
		count := nodeCount{Label: g.label, Provider: g.provider}
		for _, state := range slices.SortedFunc(maps.Keys(states), compareBadges) {
			count.States = append(count.States, layout.Mark(fmt.Sprintf("%d %s", states[state], state.Text), state.Kind))
		}
		list = append(list, count)
	}
	slices.SortFunc(list, func(a, b nodeCount) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Provider, b.Provider))
	})
	return list
}

func compareBadges(a, b layout.Badge) int { return cmp.Compare(a.Text, b.Text) }
