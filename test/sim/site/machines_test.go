package site

import (
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/cloud"
	"poolkeeper/zkmodel"
)

// proofTime is for how long a process may act on what it has read, or written, under a lock: the answer may be as late as the
// longest fault lasts.
const proofTime = longest + 10*time.Second

// creates: a machine is asked for by who holds the lock of its record, which is there before it.
func (j *judge) creates(p *process, cloud string, spec providers.NodeSpec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Note(p.Name, "asks %s for a machine for node %s, launch %.8s", cloud, spec.NodeID, spec.Metadata[providers.MetaLaunch])
	n := j.tree.nodes[spec.NodeID]
	switch {
	case n == nil:
		j.wrongBy(p, "asks %s for a machine for node %s, which has no record", cloud, spec.NodeID)
		return
	case (n.Broken != nil || n.State == "") && time.Since(j.spoiltAt[n.ID]) <= proofTime: // a person spoilt it a moment ago
	case j.justEdited(n.Path()):
	case n.State != zkmodel.NodeBuilding || n.Provider != cloud || n.LaunchID != spec.Metadata[providers.MetaLaunch]:
		j.wrongBy(p, "asks %s for a machine for node %s, launch %.8s, which is %s in %s, launch %.8s", cloud, spec.NodeID,
			spec.Metadata[providers.MetaLaunch], n.State, n.Provider, n.LaunchID)
	}
	j.acts(p, n.ID, "asks for a machine")
}

// deletes: a machine goes by who holds the lock of its record, or when there is none; those of
// others never.
func (j *judge) deletes(p *process, cloud, id string) {
	machines := j.world.clouds.Nodes(cloud)
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(machines, func(m providers.NodeInfo) bool { return m.ExternalID == id })
	if i < 0 {
		return
	}
	m := machines[i]
	j.Note(p.Name, "deletes machine %s of node %s in %s", id, m.Metadata[providers.MetaNode], cloud)
	if site := m.Metadata[providers.MetaSite]; site == another {
		j.Wrong(p.Name, "deletes machine %s of another installation in %s", id, cloud)
		return
	}
	n := j.tree.nodes[m.Metadata[providers.MetaNode]]
	if since, is := j.broken[m.Metadata[providers.MetaNode]]; n != nil && is {
		lock := zkmodel.LockPath(n.Path())
		own := j.tree.holder(lock).client == p.Name // it was made in this launch, which goes on
		wrong := func(format string, args ...any) { j.Wrong(p.Name, format, args...) }
		if j.tree.last[lock] == p.Name { // a launch, too, of one that may not know yet that it lost its lock
			wrong = func(format string, args ...any) { j.wrongBy(p, format, args...) }
		}
		if age := time.Since(since); age > proofTime && !own {
			wrong("deletes machine %s of node %s, whose record cannot be read since %s", id, n.ID, age)
		}
		return
	}
	if n == nil || n.LaunchID != "" && m.Metadata[providers.MetaLaunch] != n.LaunchID {
		return // a leak
	}
	if n.ExternalID.Text() == id && slices.Contains(kept, n.State) && !j.justEdited(n.Path()) {
		j.wrongBy(p, "deletes machine %s of node %s, which is %s", id, n.ID, brief(n))
	}
	j.acts(p, n.ID, "deletes a machine")
}

// kept are the states of nodes whose machines stay: before one is deleted its record says so.
var kept = []zkmodel.NodeState{zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.NodeUsed, zkmodel.NodeHold}

// made is told of a new machine.
func (j *judge) made(id, launch string, by cloud.Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if by == cloud.Duplicate {
		j.twice[launch]++
	}
	j.launched[id], j.there[id] = launch, true
}

// gone is told of a machine that is gone; nobody may have deleted it.
func (j *judge) gone(id string, by cloud.Fault) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.there, id)
	if by == cloud.Vanished {
		j.lost[id] = true
	}
}

// acts: what is done for a node is done by who holds its lock, as far as the process can know.
func (j *judge) acts(p *process, node, what string) {
	lock := zkmodel.LockPath(zkmodel.NodePath(node))
	if now := j.tree.holder(lock); now.client != p.Name {
		j.wrongBy(p, "%s for node %s, whose lock is held by %q, session %#x", what, node, now.client, now.session)
	}
}

// wrongBy is wrong unless the process lost its locks before their time, or was paused until a
// moment ago: then only the fence keeps its writes from being made.
func (j *judge) wrongBy(p *process, format string, args ...any) {
	if p.JustResumed() || time.Now().Before(j.excused[p.Name]) {
		j.Note(p.Name, "excused: "+format, args...)
		return
	}
	j.Wrong(p.Name, format, args...)
}
