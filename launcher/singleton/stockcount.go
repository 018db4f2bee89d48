package singleton

import (
	"encoding/json"
	"slices"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// isStock reports whether a request asks for stock, of a label where one is named, and
// whether it is ours to end: one of a Poolkeeper's launcher. Those of the first
// release have no mark, but stay when their session ends, which a Nodepool's never do.
func isStock(r *zkmodel.Request, label string) (stock, ours bool) {
	if r.Broken != nil || r.Requestor != schedule.MinReadyRequestor || len(r.NodeTypes) != 1 || label != "" && r.NodeTypes[0] != label {
		return false, false
	}
	var data map[string]any
	_ = json.Unmarshal([]byte(r.RequestorData.Text()), &data) // what is no object has no mark
	_, marked := data[stockMark]
	return true, marked || r.Stat.EphemeralOwner == 0
}

// stockCount is what there is of a label, and what will be.
type stockCount struct {
	there   map[string]bool    // all requests that were there, but for those that are done
	open    int                // requests for stock, of whomever, that will become nodes
	waiting []*zkmodel.Request // those of open that are ours, and nobody has taken up
	done    []*zkmodel.Request // ours that have come to an end
	nodes   int                // nodes in stock, and those in launch whose request is gone
}

func (c stockCount) total() int { return c.open + c.nodes }

// count counts the requests for stock, then the nodes.
func (s *Stock) count() stockCount {
	c := stockCount{there: map[string]bool{}}
	for _, r := range s.view.Requests() {
		stock, ours := isStock(r, s.label)
		ours = ours || stock && r.Stat.EphemeralOwner == s.session.ID() // whatever was made of its data
		switch {
		case stock && ours && (r.State == zkmodel.RequestFulfilled || r.State == zkmodel.RequestFailed):
			c.done = append(c.done, r) // a Nodepool served it
			continue
		case stock && r.State != zkmodel.RequestFailed:
			c.open++
		}
		c.there[r.ID] = true
		if stock && ours && r.State == zkmodel.RequestRequested {
			c.waiting = append(c.waiting, r)
		}
	}
	c.nodes = s.countNodes(c.there)
	return c
}

// countNodes counts the ready nodes of the label that are nobody's, and those that
// will be: in launch for a request for stock that went with its maker. One of which we
// know nothing may be such a node.
func (s *Stock) countNodes(requests map[string]bool) int {
	served := map[string]bool{}
	for _, c := range s.view.Components(zkmodel.KindPool) {
		served[c.ProviderName] = true
	}
	count := 0
	for _, n := range s.view.Nodes() {
		if n.Unknown() {
			count++
			continue
		}
		if n.Broken != nil || !slices.Contains(n.Type, s.label) {
			continue
		}
		free := n.State == zkmodel.NodeReady && n.AllocatedTo == ""
		inLaunch := n.State == zkmodel.NodeInit || n.State == zkmodel.NodeBuilding
		comes := n.Requestor == schedule.MinReadyRequestor && n.AllocatedTo != "" && !requests[n.AllocatedTo] &&
			(inLaunch || n.State == zkmodel.NodeReady) && (n.Locked || served[n.Provider])
		if free || comes {
			count++
		}
	}
	return count
}
