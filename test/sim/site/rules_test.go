package site

import (
	"path"
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
	if r.State == zkmodel.RequestFailed {
		j.failed(client, r)
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
		fits := n != nil && (slices.Contains(n.Type, r.NodeTypes[i]) || j.unlabelled[n.Path()] || j.unlabelled[r.Path()])
		if !fits || n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != r.ID {
			j.Wrong(client, "request %s of %v is fulfilled with node %s, which is %s", r.ID, r.NodeTypes, id, brief(n))
		}
		if n != nil && !j.lost[n.ExternalID.Text()] && !j.there[n.ExternalID.Text()] && !j.maimed[n.Path()] && !time.Now().Before(j.excused[client]) {
			j.Wrong(client, "request %s is fulfilled with node %s, whose machine %q is in no cloud", r.ID, id, n.ExternalID.Text())
		}
		for _, other := range j.tree.requests {
			if other.ID != r.ID && other.State == zkmodel.RequestFulfilled && slices.Contains(other.Nodes, id) {
				j.Wrong(client, "requests %s and %s both have node %s", other.ID, r.ID, id)
			}
		}
	}
}

// failed: a request fails for a reason, when no pool is left that has not declined it.
func (j *judge) failed(client string, r *zkmodel.Request) {
	if r.Reason == "" {
		j.Wrong(client, "request %s fails for no reason", r.ID)
	}
	for _, record := range sorted(j.tree.pools) {
		if p := j.tree.pools[record]; !r.DeclinedByPool(p.id) && time.Since(p.at) > behind {
			j.Wrong(client, "request %s fails, which pool %s has not declined", r.ID, p.id)
		}
	}
}

// pool is told of a change of what may be the record of a pool.
func (j *judge) pool(c zookeeper.Change) {
	if path.Dir(c.Path) != zkmodel.ComponentsRoot+"/"+zkmodel.KindPool {
		return
	}
	switch c.Kind {
	case zookeeper.Delete:
		delete(j.tree.pools, c.Path)
	case zookeeper.Create:
		if one := zkmodel.DecodeComponent(path.Base(c.Path), c.Data); one.Broken == nil && one.ID != "" {
			j.tree.pools[c.Path] = registered{one.ID, time.Now()}
		}
	default:
	}
}

// given: a node that is promised to a requestor stays, and the machine that a record names was made
// for it.
func (j *judge) given(t zookeeper.Transaction, old, n *zkmodel.Node) {
	if !isLauncher(t.Client) {
		return
	}
	if r := j.tree.requests[old.AllocatedTo]; old.State == zkmodel.NodeReady && (n.State == zkmodel.NodeDeleting || n.AllocatedTo != old.AllocatedTo) &&
		r != nil && r.State == zkmodel.RequestFulfilled && slices.Contains(r.Nodes, n.ID) {
		j.Wrong(t.Client, "node %s becomes %s, which request %s was promised", n.ID, brief(n), r.ID)
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
	inPool, inCloud := 0, 0
	for _, one := range j.tree.nodes {
		if j.counts(one, n) && one.Provider == n.Provider {
			inCloud++
			if one.Pool == n.Pool {
				inPool++
			}
		}
	}
	v := j.alive[t.Client].limits()
	if most := v.pools[n.Provider+"/"+n.Pool]; inPool > most {
		j.Wrong(t.Client, "node %s is the %d. of pool %s/%s, which may have %d", n.ID, inPool, n.Provider, n.Pool, most)
	}
	if most := j.room[n.Provider]; inCloud > most {
		j.Wrong(t.Client, "node %s is the %d. of %s, which has room for %d", n.ID, inCloud, n.Provider, most)
	}
	j.ofTenant(t.Client, n)
}

// counts reports whether a launcher that changes node n has to count another one, or n itself.
func (j *judge) counts(one, n *zkmodel.Node) bool {
	return one.Broken == nil && (one.ID == n.ID || !time.Now().Before(j.unseen[one.ID]))
}

// ofTenant: no tenant gets a node beyond its limit.
func (j *judge) ofTenant(client string, n *zkmodel.Node) {
	if n.TenantName != limitedTenant || !isLauncher(client) || !j.alive[client].limits().limited {
		return
	}
	has := 0
	for _, one := range j.tree.nodes {
		if j.counts(one, n) && one.TenantName == limitedTenant {
			has++
		}
	}
	if has > tenantServers {
		j.Wrong(client, "node %s is the %d. of %s, who may have %d", n.ID, has, limitedTenant, tenantServers)
	}
}

// removed: the record of a node goes once it says so; one that cannot be read stays.
func (j *judge) removed(client string, n *zkmodel.Node) {
	switch {
	case n == nil, j.empty[n.ID], time.Now().Before(j.excused[client]), j.justEdited(n.Path()):
	case n.Broken != nil || n.State == "":
		since, own := time.Since(j.spoiltAt[n.ID]), j.tree.holder(zkmodel.LockPath(n.Path())).at
		if since > proofTime && !own.Before(j.spoiltAt[n.ID]) { // who had its lock before has read it
			j.Wrong(client, "removes the record of node %s, which cannot be read since %s", n.ID, since)
		}
	case n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted:
		j.Wrong(client, "removes the record of node %s, which is %s", n.ID, brief(n))
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
