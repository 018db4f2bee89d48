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

// See looks at nodes, so that it can be told how long they were used once they are given back.
// It tells how many of a canary's nodes are in use for long, by provider and image. It is
// called at each look, and looks at nothing where no image has a canary.
func (b *Book) See(nodes []*zkmodel.Node, trials map[place]*zkmodel.Canary) map[place]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(trials) == 0 {
		clear(b.uses)
		return nil
	}
	now := b.Now()
	long, there := map[place]int{}, map[string]bool{}
	for _, n := range nodes {
		if n.Broken != nil || n.State != zkmodel.NodeReady && n.State != zkmodel.NodeInUse && n.State != zkmodel.NodeUsed {
			continue
		}
		key, err := zkmodel.ParseUploadPath(n.ImageID)
		if err != nil {
			continue
		}
		c := trials[place{n.Provider, key.Image}]
		if c == nil || n.Stat.Ctime.Before(c.Trial.Since.Time()) {
			continue
		}
		there[n.ID] = true
		switch n.State {
		case zkmodel.NodeReady:
			b.uses[n.ID] = use{ready: now}
		case zkmodel.NodeInUse:
			u := b.uses[n.ID]
			u.inUse = n.StateTime
			b.uses[n.ID] = u
			if key.Build == c.Trial.Build && now.Sub(n.StateTime.Time()) >= Short {
				long[place{n.Provider, key.Image}]++
			}
		}
	}
	for id := range b.uses {
		if !there[id] {
			delete(b.uses, id)
		}
	}
	return long
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
