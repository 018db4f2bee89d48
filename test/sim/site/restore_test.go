package site

import (
	"time"

	"poolkeeper/providers"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
)

// backup is what the servers had at a moment, and what the judge knew of it.
type backup struct {
	files *zookeeper.Snapshot
	tree  *tree
}

// backUp takes one. No transaction comes between the two: both are seen by the same number.
func (w *world) backUp() backup {
	for {
		before := w.judge.number()
		b := backup{w.cluster.Snapshot(), w.judge.copied()}
		if w.judge.number() == before {
			return b
		}
	}
}

// restore has people put an older tree back: what was written since then never was. Numbers come
// again; machines that were made since have no record, records that are there again no machine.
// The servers are away for longer than sessions last: a session that outlives a restore has
// locks again that its process gave back, and sees what was as if it still were.
func (w *world) restore() {
	if w.restoring.Load() {
		return
	}
	b, d := w.backUp(), 2*w.while()
	w.judge.Note(operator, "backs ZooKeeper up")
	w.restoring.Store(true)
	w.others.Go(func() {
		wait(d)
		w.judge.Fault("restore", "servers", "what they had %s ago", d)
		for server := range servers {
			w.cluster.Kill(server + 1)
		}
		wait(2 * sessionTimeout)
		w.judge.restored(b.tree)
		w.cluster.Restore(b.files)
		w.judge.online()
		w.restores.Add(1)
		for _, z := range w.zuuls {
			z.restart()
		}
		w.restoring.Store(false)
		for _, name := range names {
			w.judge.without(name, w.clouds.Nodes(name), func(*zkmodel.Node) bool { return true })
		}
	})
}

func (j *judge) number() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

func (j *judge) copied() *tree {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tree.clone()
}

// restored goes back to an older tree. Nobody who acts now can know that yet.
func (j *judge) restored(old *tree) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.tree
	j.tree, j.offline = old.clone(), true
	for dir := range now.lines {
		j.tree.last[dir] = now.holder(dir).client
	}
	clear(j.alone)
	clear(j.noted)
	for client := range j.alive {
		j.excused[client] = time.Now().Add(excuse)
	}
}

// online: from now on transactions are of the older tree.
func (j *judge) online() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.offline = false
}

// without notes those of a cloud's records whose machines were deleted before the tree went back.
func (j *judge) without(cloud string, machines []providers.NodeInfo, these func(*zkmodel.Node) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	there := map[string]bool{}
	for _, m := range machines {
		there[m.ExternalID] = true
	}
	for _, n := range j.tree.nodes {
		if id := n.ExternalID.Text(); n.Provider == cloud && id != "" && !there[id] && these(n) {
			j.lost[id] = true
		}
	}
}
