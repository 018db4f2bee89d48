package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// nodesView is the nodes, and how many there are of which kind.
type nodesView struct {
	rows[nodeView]

	Counts []nodeCount
}

// nodeCount is how many nodes of a label a provider has, by state.
type nodeCount struct {
	Label, Provider string
	States          []badge // "3 ready"
}

// nodeView is one node.
type nodeView struct {
	ID             string
	State          badge
	Since          when
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
		ID: n.ID, State: stateBadge(n.State, n.Broken), Since: moment(listing.Changed(n.StateTime, n.Stat.Mtime), s.now),
		Locked: n.Locked, Labels: strings.Join(n.Type, ", "), Provider: n.Provider, Pool: n.Pool,
		Server:  cmp.Or(n.Hostname, n.ExternalID.Text()),
		Address: cmp.Or(n.InterfaceIP, n.PublicIPv4, n.PublicIPv6, n.PrivateIPv4),
		Image:   n.ImageID, AllocatedTo: n.AllocatedTo, Reason: listing.Words(": ", listing.Why(n.Reason, n.Broken), n.Comment),
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
	counts := map[group]map[badge]int{}
	for _, n := range nodes {
		g := group{strings.Join(n.Type, ", "), n.Provider}
		if counts[g] == nil {
			counts[g] = map[badge]int{}
		}
		counts[g][stateBadge(n.State, n.Broken)]++
	}
	list := make([]nodeCount, 0, len(counts))
	for g, states := range counts {
		count := nodeCount{Label: g.label, Provider: g.provider}
		for _, state := range slices.SortedFunc(maps.Keys(states), compareBadges) {
			count.States = append(count.States, badge{fmt.Sprintf("%d %s", states[state], state.Text), state.Kind})
		}
		list = append(list, count)
	}
	slices.SortFunc(list, func(a, b nodeCount) int {
		return cmp.Or(cmp.Compare(a.Label, b.Label), cmp.Compare(a.Provider, b.Provider))
	})
	return list
}

func compareBadges(a, b badge) int { return cmp.Compare(a.Text, b.Text) }

// requestView is one node request.
type requestView struct {
	ID         string
	State      badge
	Since      when
	Requestor  string
	Labels     string
	Nodes      string
	DeclinedBy string
	Reason     string
}

// viewRequest shows a request.
func (s *snapshot) viewRequest(r *zkmodel.Request) requestView {
	return requestView{
		ID: r.ID, State: stateBadge(r.State, r.Broken), Since: moment(listing.Changed(r.StateTime, r.Stat.Mtime), s.now),
		Requestor: r.Requestor, Labels: strings.Join(r.NodeTypes, ", "), Nodes: strings.Join(r.Nodes, ", "),
		DeclinedBy: strings.Join(r.DeclinedBy, ", "), Reason: listing.Why(r.Reason, r.Broken),
	}
}
