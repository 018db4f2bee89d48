package lesson

import "poolkeeper/providers"

// Burst is how launches go that come one upon the other, in a cloud whose room is
// not known and that has not refused. An empty one is asked for AtOnce machines; one
// that holds some may be full, so it is asked for one, and for more as these come.
type Burst struct {
	from, held int // machines at the beginning, and now
}

// Seen is the burst after another look at what is in use. It is over when no request
// waits any more and no launch is under way.
func (b Burst) Seen(use Use, waiting bool) Burst {
	b.held = use.Held[providers.Instances]
	if !waiting && use.Launches == 0 {
		b.from = b.held
	}
	b.from = min(b.from, b.held)
	return b
}

// window is how many launches may be under way.
func (b Burst) window() int {
	if b.from == 0 {
		return AtOnce
	}
	return min(AtOnce, 1+b.held-b.from)
}
