package site

import (
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
)

// whole looks at what a transaction leaves: a request that it fulfils has its nodes.
func (j *judge) whole(t zookeeper.Transaction, before map[string]*zkmodel.Request) {
	for _, c := range t.Changes {
		_, id := recordOf(c.Path)
		if r := j.tree.requests[id]; c.Kind == zookeeper.SetData && r != nil && r.Broken == nil && isLauncher(t.Client) {
			if was := before[id]; was == nil || was.State != r.State {
				j.settled(t.Client, r)
			}
		}
	}
}

// settled: what is fulfilled is complete, and nobody else's; what has failed says why.
func (j *judge) settled(client string, r *zkmodel.Request) {
	if r.State == zkmodel.RequestFailed && r.Reason == "" {
		j.Wrong(client, "request %s fails for no reason", r.ID)
	}
	if r.State != zkmodel.RequestFulfilled {
		return
	}
	if len(r.Nodes) != len(r.NodeTypes) {
		j.Wrong(client, "request %s of %v is fulfilled with %v", r.ID, r.NodeTypes, r.Nodes)
		return
	}
	for i, id := range r.Nodes {
		n := j.tree.nodes[id]
		// A person may have taken the labels out of a record.
		fits := n != nil && (slices.Contains(n.Type, r.NodeTypes[i]) || !j.edited[n.Path()].IsZero() || !j.edited[r.Path()].IsZero())
		if !fits || n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != r.ID {
			j.Wrong(client, "request %s of %v is fulfilled with node %s, which is %s", r.ID, r.NodeTypes, id, brief(n))
		}
		for _, other := range j.tree.requests {
			if other.ID != r.ID && other.State == zkmodel.RequestFulfilled && slices.Contains(other.Nodes, id) {
				j.Wrong(client, "requests %s and %s both have node %s", other.ID, r.ID, id)
			}
		}
	}
}

// given: a node that is promised to a requestor stays, and the machine that a record names was made
// for it.
func (j *judge) given(t zookeeper.Transaction, old, n *zkmodel.Node) {
	if !isLauncher(t.Client) {
		return
	}
	if r := j.tree.requests[old.AllocatedTo]; old.State == zkmodel.NodeReady && n.State == zkmodel.NodeDeleting &&
		r != nil && r.State == zkmodel.RequestFulfilled && slices.Contains(r.Nodes, n.ID) {
		j.Wrong(t.Client, "node %s is to be deleted, which request %s was promised", n.ID, r.ID)
	}
	machine := n.ExternalID.Text()
	if launch := j.launched[machine]; launch != "" && n.LaunchID != "" && launch != n.LaunchID {
		j.Wrong(t.Client, "node %s, launch %.8s, takes machine %s for its own, of launch %.8s", n.ID, n.LaunchID, machine, launch)
	}
}

func brief(n *zkmodel.Node) string {
	if n == nil {
		return "not there"
	}
	return string(n.State) + " for " + n.AllocatedTo
}

// newNode: a launcher makes no record that does not fit into the limits that it knows.
func (j *judge) newNode(t zookeeper.Transaction, n *zkmodel.Node) {
	p := j.alive[t.Client]
	inPool, inCloud, ofTenant := 0, 0, 0
	for _, one := range j.tree.nodes {
		if one.Broken != nil || one.ID != n.ID && time.Now().Before(j.unseen[one.ID]) {
			continue
		}
		if one.Provider == n.Provider {
			inCloud++
			if one.Pool == n.Pool {
				inPool++
			}
		}
		if one.TenantName == limitedTenant {
			ofTenant++
		}
	}
	v := p.limits()
	if most := v.pools[n.Provider+"/"+n.Pool]; inPool > most {
		j.Wrong(t.Client, "node %s is the %d. of pool %s/%s, which may have %d", n.ID, inPool, n.Provider, n.Pool, most)
	}
	if most := j.room[n.Provider]; inCloud > most {
		j.Wrong(t.Client, "node %s is the %d. of %s, which has room for %d", n.ID, inCloud, n.Provider, most)
	}
	if n.TenantName == limitedTenant && v.limited && ofTenant > tenantServers {
		j.Wrong(t.Client, "node %s is the %d. of %s, who may have %d", n.ID, ofTenant, limitedTenant, tenantServers)
	}
}

// limitTold is told of what a cloud says that there is room for: it may lie.
func (j *judge) limitTold(cloud string, told providers.Resources) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.room[cloud] = max(j.room[cloud], told[providers.Instances])
}

// taken is how long a request under way whose launcher is gone may wait for another one: less than requestors wait.
const taken = 100 * time.Second

// takenOver: a request under way whose launcher is gone has another one soon. It is looked at whenever its record
// or its lock changes; in the end its requestor gives it up.
func (j *judge) takenOver(id string) {
	since, known := j.alone[id]
	r := j.tree.requests[id]
	if r != nil && r.State == zkmodel.RequestPending && j.tree.holder(zkmodel.RequestLockPath(id)).name == "" {
		if !known {
			j.alone[id] = time.Now()
		}
		return
	}
	delete(j.alone, id)
	if known && time.Since(since) > taken {
		j.Wrong("launchers", "had not taken request %s over for %s", id, time.Since(since))
	}
}
