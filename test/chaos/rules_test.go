package chaos

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// stockRequestor is who asks for nodes that are kept in stock.
const stockRequestor = "NodePool:min-ready"

// report says what is wrong.
type report func(format string, args ...any)

// machineRules hold for what the clouds have at any time.
func machineRules(l *look, wrong report) {
	for provider, list := range l.machines {
		seen := map[string]bool{}
		used := map[string]providers.Resources{}
		for _, m := range list {
			node := m.Metadata[providers.MetaNode]
			if seen[node] {
				wrong("node %s has two machines in %s", node, provider)
			}
			seen[node] = true
			book(used, provider, m.Metadata[providers.MetaPool], nodeSize())
		}
		within(used, "machines", wrong)
	}
}

// book counts resources towards a provider and its pool.
func book(used map[string]providers.Resources, provider, pool string, size providers.Resources) {
	for _, where := range []string{provider, provider + "/" + pool} {
		if used[where] == nil {
			used[where] = providers.Resources{}
		}
		for name, n := range size {
			used[where][name] += n
		}
	}
}

// within compares what is used with the quotas.
func within(used map[string]providers.Resources, what string, wrong report) {
	for where, limits := range quotas() {
		for name, limit := range limits {
			if got := used[where][name]; got > limit {
				wrong("%s of %s take %d %s, the limit is %d", what, where, got, name, limit)
			}
		}
	}
}

// recordRules hold for the tree at every moment. With limited, a tenant has a quota; honest
// are the clouds that have all the room that they tell of.
func recordRules(l *look, limited bool, honest func(provider string) bool, wrong report) {
	used, tenant, slotsTaken := map[string]providers.Resources{}, 0, map[string]string{}
	for _, n := range l.nodes {
		if n.Broken != nil {
			continue
		}
		book(used, n.Provider, n.Pool, n.Resources)
		if n.TenantName == limitedTenant && n.Provider != "racks" { // static machines count towards no tenant
			tenant += n.Resources[providers.Instances]
		}
		if n.State == zkmodel.NodeAborted && honest(n.Provider) {
			wrong("node %s: the cloud was asked for more than it has: %s", n.ID, n.Reason)
		}
		if n.Provider != "racks" {
			continue
		}
		number, _ := n.Slot.Int()
		slot := fmt.Sprint(n.Hostname, " ", number)
		if other := slotsTaken[slot]; other != "" {
			wrong("nodes %s and %s are both slot %s", other, n.ID, slot)
		}
		slotsTaken[slot] = n.ID
	}
	within(used, "records", wrong)
	if limited && tenant > tenantServers {
		wrong("%s has %d nodes, the limit is %d", limitedTenant, tenant, tenantServers)
	}
}

// requestRules hold for requests at every moment: what is fulfilled is complete
// and nobody else's, what has failed says why.
func requestRules(l *look, wrong report) {
	owners := map[string]string{}
	for _, r := range l.requests {
		if r.State == zkmodel.RequestFailed && r.Reason == "" {
			wrong("request %s failed for no reason", r.ID)
		}
		if r.State != zkmodel.RequestFulfilled {
			continue
		}
		if len(r.Nodes) != len(r.NodeTypes) {
			wrong("request %s of %v is fulfilled with %v", r.ID, r.NodeTypes, r.Nodes)
			continue
		}
		places := map[string]bool{}
		for i, id := range r.Nodes {
			if owners[id] != "" {
				wrong("requests %s and %s both have node %s", owners[id], r.ID, id)
			}
			owners[id] = r.ID
			n := l.node(id)
			if n == nil {
				wrong("request %s is fulfilled with node %s, which is not there", r.ID, id)
				continue
			}
			if n.State != zkmodel.NodeReady || n.AllocatedTo != r.ID || !slices.Contains(n.Type, r.NodeTypes[i]) {
				wrong("request %s of %v is fulfilled with node %s, %s %v of %q", r.ID, r.NodeTypes, id, n.State, n.Type, n.AllocatedTo)
			}
			zone := ""
			if n.Provider == "west" {
				zone = n.AZ
			}
			places[n.Provider+" "+n.Pool+" "+zone] = true
		}
		if len(places) > 1 {
			wrong("request %s has nodes in %v", r.ID, places)
		}
	}
}

// stockRules hold for what is kept in stock: no more is asked for than is
// missing. With strict, the label that only patient ones ask for is counted
// exactly: nobody has just given a node of it back.
func stockRules(l *look, strict bool, wrong report) {
	open, idle := map[string]int{}, map[string]int{}
	for _, r := range l.requests {
		if r.Requestor == stockRequestor && (r.State == zkmodel.RequestRequested || r.State == zkmodel.RequestPending) {
			open[r.NodeTypes[0]]++
		}
	}
	for _, n := range l.nodes {
		if n.State == zkmodel.NodeReady && n.AllocatedTo == "" && len(n.Type) > 0 {
			idle[n.Type[0]]++
		}
	}
	for label, most := range map[string]int{"small": moreOfSmall, "kept": stockOfKept, "large": 0, "rack": 0} {
		if open[label] > most {
			wrong("%d nodes of %s are asked for as stock, %d is its min-ready", open[label], label, most)
		}
	}
	if sum := open["kept"] + idle["kept"]; strict && sum > stockOfKept {
		wrong("%d nodes of kept are in stock and %d asked for, %d is its min-ready", idle["kept"], open["kept"], stockOfKept)
	}
}

// oddities are what may be for a moment, but not last: by what it is, and why it
// should not be.
func oddities(l *look) map[string]string {
	odd := map[string]string{}
	recorded := map[string]bool{}
	for _, n := range l.nodes {
		recorded[n.ID] = true
		if why := reasonless(n, l); why != "" {
			odd["node "+n.ID] = why
		}
	}
	for provider, list := range l.machines {
		there := map[string]bool{}
		for _, m := range list {
			node := m.Metadata[providers.MetaNode]
			if there[node] = true; !recorded[node] {
				odd["machine "+m.ExternalID] = "machine without a record"
			}
		}
		for _, n := range l.nodes {
			alive := n.State == zkmodel.NodeReady || n.State == zkmodel.NodeInUse || n.State == zkmodel.NodeHold
			if n.Provider == provider && alive && !there[n.ID] {
				odd["record "+n.ID] = "node without a machine"
			}
		}
	}
	return odd
}

// reasonless says why a node's record should not be there much longer, or "".
func reasonless(n *zkmodel.Node, l *look) string {
	if n.Broken != nil {
		return "broken record"
	}
	owner := l.request(n.AllocatedTo)
	switch n.State {
	case zkmodel.NodeReady:
		if n.AllocatedTo != "" && owner == nil && !n.Locked {
			return "node of a request that is gone"
		}
	case zkmodel.NodeInit, zkmodel.NodeBuilding:
		if owner == nil && !n.Locked {
			return "launch of a request that is gone"
		}
	case zkmodel.NodeInUse:
		if !n.Locked {
			return "node of a requestor that is gone"
		}
	case zkmodel.NodeHold:
		if l.at.After(n.StateTime.Time().Add(time.Duration(n.HoldExpiration) * time.Second)) {
			return "node held for too long"
		}
	default:
		return "node on its way out"
	}
	return ""
}
