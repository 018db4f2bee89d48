package canary

import (
	"time"

	"poolkeeper/zkmodel"
)

// use is what we have seen of a node: when it was ready last, and since when its user has it.
type use struct {
	ready time.Time     // on our clock; zero when we have not seen it so
	inUse zkmodel.Epoch // as its user wrote it; 0 when we have not seen it so
}

// Nodes are how many nodes of the canary and of other builds there are, of those that began
// since it is the canary.
type Nodes struct{ Canary, Previous Live }

// Live is how many nodes of a build there are, by how far they have come.
type Live struct {
	Booting int
	Booted  int // whatever became of them then
	Long    int // of these, in use for longer than Short
}

// count counts a node.
func (l *Live) count(n *zkmodel.Node, now time.Time) {
	switch n.State {
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeTesting:
		l.Booting++
	case zkmodel.NodeInUse:
		if l.Booted++; now.Sub(n.StateTime.Time()) >= Short {
			l.Long++
		}
	case zkmodel.NodeReady, zkmodel.NodeUsed, zkmodel.NodeHold:
		l.Booted++
	}
}

// See looks at nodes, so that it can be told how long they were used once they are given back.
// It tells how many there are, by provider and image, where there is a canary. It is
// called at each look, and looks at nothing where no image has a canary.
func (b *Book) See(nodes []*zkmodel.Node, trials map[place]*zkmodel.Canary) map[place]Nodes {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(trials) == 0 {
		clear(b.uses)
		return nil
	}
	now := b.Now()
	live, there := map[place]Nodes{}, map[string]bool{}
	for _, n := range nodes {
		if n.Broken != nil || n.Validates != "" {
			continue
		}
		key, err := zkmodel.ParseUploadPath(n.ImageID)
		if err != nil {
			continue
		}
		at := place{n.Provider, key.Image}
		c := trials[at]
		if c == nil || n.Stat.Ctime.Before(c.Trial.Since.Time()) {
			continue
		}
		all := live[at]
		if key.Build == c.Trial.Build {
			all.Canary.count(n, now)
		} else {
			all.Previous.count(n, now)
		}
		live[at] = all
		switch n.State {
		case zkmodel.NodeReady:
			b.uses[n.ID] = use{ready: now}
		case zkmodel.NodeInUse:
			u := b.uses[n.ID]
			u.inUse = n.StateTime
			b.uses[n.ID] = u
		case zkmodel.NodeUsed:
		default:
			continue
		}
		there[n.ID] = true
	}
	for id := range b.uses {
		if !there[id] {
			delete(b.uses, id)
		}
	}
	return live
}

// Ended is what is to be counted of a node that its user has given back: nothing where
// nobody can tell for how long it was used.
func (b *Book) Ended(n *zkmodel.Node) []Note {
	if b == nil || n.State != zkmodel.NodeUsed {
		return nil
	}
	b.mu.Lock()
	u, seen := b.uses[n.ID]
	b.mu.Unlock()
	note := Note{upload: n.ImageID, born: n.Stat.Ctime, what: served}
	switch {
	case !seen:
		return nil
	case u.inUse != 0: // both times are its user's
		if n.StateTime.Time().Sub(u.inUse.Time()) < Short {
			note.what = short
		}
	case b.Now().Sub(u.ready) < Short: // in use between two looks
		note.what = short
	default:
		return nil
	}
	return []Note{note}
}
