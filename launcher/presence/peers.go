package presence

import "poolkeeper/zkmodel"

// Peers remembers which pools were registered. One goroutine uses it.
type Peers struct{ there map[string]bool }

// Left takes over the pools that are registered now, and reports whether one has left
// since the last call; the first call always does.
func (p *Peers) Left(pools []*zkmodel.Component) bool {
	there := map[string]bool{}
	for _, c := range pools {
		there[c.Name] = true
	}
	left := p.there == nil
	for name := range p.there {
		left = left || !there[name]
	}
	p.there = there
	return left
}
