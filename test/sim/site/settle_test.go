package site

import (
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	// rest is how long everything may take to come to rest after the last fault.
	rest = 10 * time.Minute
	// soon is how long what nobody uses any more may be there, when no fault is in the way.
	soon = 3 * time.Minute
	// longestRetry is after how long what could not be done is tried again, at the latest.
	longestRetry = 5 * time.Minute
	// still is for how long nothing may change then.
	still = 2 * time.Minute
)

// settle: requestors finish what they have begun; then nothing is left but the stock, one machine
// for each record, and nothing changes any more.
func (w *world) settle() {
	close(w.calm)
	begun := w.judge.Age()
	for _, z := range w.zuuls {
		<-z.done
	}
	if took := w.judge.Age() - begun; took > rest {
		w.judge.Wrong("world", "requestors had their answers after %s", took)
	}
	w.judge.Note("world", "has no more requests")
	wait(soon)
	w.judge.tidied()
	wait(rest - soon)
	w.judge.atRest(true)
	wait(still)
	w.judge.atRest(false)
}

// tidied: what nobody uses any more was seen, and is gone.
func (j *judge) tidied() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range sorted(j.tree.nodes) {
		n := j.tree.nodes[id]
		over := n.State == zkmodel.NodeUsed || n.State == zkmodel.NodeInUse || n.State == zkmodel.NodeDeleting
		served := slices.Contains(names, n.Provider)           // a person may have named another, and nobody put it right
		waits := time.Since(j.edited[n.Path()]) < longestRetry // what could not be deleted as it was is tried again then
		if served && !waits && j.tree.holder(zkmodel.LockPath(n.Path())).name == "" && (over || n.State == zkmodel.NodeReady && n.AllocatedTo != "") {
			j.Wrong("world", "node %s, %s, was not tidied up within %s", id, brief(n), soon)
		}
	}
}

// atRest looks at what is left.
func (j *judge) atRest(begins bool) {
	left := map[string][]providers.NodeInfo{}
	for _, name := range names {
		left[name] = j.world.clouds.Nodes(name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	stock := map[string]int{}
	for _, n := range j.tree.nodes {
		lock := j.tree.holder(zkmodel.LockPath(n.Path()))
		if n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != "" || lock.name != "" {
			if !j.maimed[n.Path()] || slices.Contains(names, n.Provider) { // nobody serves what names no provider
				j.Wrong("world", "node %s is left over: %s, locked by %q in session %#x", n.ID, brief(n), lock.client, lock.session)
			}
			continue
		}
		stock[n.Type[0]]++
	}
	for _, r := range j.tree.requests {
		j.Wrong("world", "request %s of %s is left over: %s", r.ID, r.Requestor, r.State)
	}
	if stock["small"] < 1 {
		j.Wrong("world", "in stock is %v", stock)
	}
	for cloud, machines := range left {
		j.oneEach(cloud, machines)
	}
	if !begins {
		j.quiet()
	}
	clear(j.writes)
}

// oneEach: each machine has a record, each record a machine, and others have theirs.
func (j *judge) oneEach(cloud string, machines []providers.NodeInfo) {
	others, has := 0, map[string]bool{}
	for _, m := range machines {
		node := m.Metadata[providers.MetaNode]
		if m.Metadata[providers.MetaSite] == another {
			others++
			continue
		}
		n := j.tree.nodes[node]
		if n != nil && n.ExternalID.Text() != m.ExternalID && n.LaunchID != "" && n.LaunchID == m.Metadata[providers.MetaLaunch] && j.twice[n.LaunchID] > 1 {
			continue // a cloud made two: the second one goes with the node
		}
		if n != nil && j.maimed[n.Path()] {
			has[node] = true
			continue // a person knows of which machine it is, or nobody
		}
		if n == nil || n.Provider != cloud || n.ExternalID.Text() != m.ExternalID || has[node] {
			j.Wrong("world", "machine %s of node %s is left over in %s", m.ExternalID, node, cloud)
		}
		has[node] = true
	}
	for _, n := range j.tree.nodes {
		if n.Provider == cloud && !has[n.ID] && !j.lost[n.ExternalID.Text()] && !j.maimed[n.Path()] { // nobody looks after idle machines
			j.Wrong("world", "node %s is left without a machine in %s", n.ID, cloud)
		}
	}
	if others != foreigners {
		j.Wrong("world", "another installation has %d machines left in %s", others, cloud)
	}
}

// quiet: at rest no record changes, and little else.
func (j *judge) quiet() {
	var list []string
	for p, n := range j.writes {
		if node, request := recordOf(p); node != "" || request != "" {
			j.Wrong("world", "%s was written %d times at rest", p, n)
		}
		list = append(list, p)
	}
	slices.Sort(list)
	if len(list) > 5 {
		j.Wrong("world", "%d places were written at rest: %s", len(list), strings.Join(list, " "))
	}
}
