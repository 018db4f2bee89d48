package launcher

import (
	"maps"
	"slices"
	"sync"

	"poolkeeper/zkmodel"
)

// ledger holds what is in this launcher's hands. The mirror follows our own
// writes a moment later; until then the ledger knows better.
type ledger struct {
	mu       sync.Mutex
	requests map[string]bool
	nodes    map[string]*zkmodel.Node // copies, as last written
	ended    struct{ requests, nodes []string }
	done     chan struct{} // there is something in ended
}

func newLedger() *ledger {
	return &ledger{requests: map[string]bool{}, nodes: map[string]*zkmodel.Node{}, done: make(chan struct{}, 1)}
}

// hold takes a request into our hands; false when it is there already.
func (l *ledger) hold(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[request] {
		return false
	}
	l.requests[request] = true
	return true
}

// drop lets a request go that nothing was done to.
func (l *ledger) drop(request string) { l.forget([]string{request}, nil) }

// note keeps a copy of a node of ours as it was written.
func (l *ledger) note(n *zkmodel.Node) {
	known := *n
	known.Locked = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes[n.ID] = &known
}

// finish marks a request and its nodes as done. They stay in our hands until
// the mirror shows how they ended.
func (l *ledger) finish(request string, nodes ...string) { l.finishAll([]string{request}, nodes) }

func (l *ledger) finishAll(requests, nodes []string) {
	l.mu.Lock()
	l.ended.requests = append(l.ended.requests, requests...)
	l.ended.nodes = append(l.ended.nodes, nodes...)
	l.mu.Unlock()
	select {
	case l.done <- struct{}{}:
	default:
	}
}

// finishNode marks a node as done that belongs to no request of ours.
func (l *ledger) finishNode(id string) { l.finish("", id) }

// takeDone lists what is done, once.
func (l *ledger) takeDone() (requests, nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests, nodes = l.ended.requests, l.ended.nodes
	l.ended.requests, l.ended.nodes = nil, nil
	return requests, nodes
}

// forget lets requests and nodes go.
func (l *ledger) forget(requests, nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range requests {
		delete(l.requests, id)
	}
	for _, id := range nodes {
		delete(l.nodes, id)
	}
}

// names lists all that is in our hands.
func (l *ledger) names() (requests, nodes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.requests)), slices.Collect(maps.Keys(l.nodes))
}

// mine tells whether a node is in our hands.
func (l *ledger) mine(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[id] != nil
}

// over lays our own nodes over those of the mirror, which read gives. One that we
// forget meanwhile is counted as it was.
func (l *ledger) over(read func() []*zkmodel.Node) []*zkmodel.Node {
	l.mu.Lock()
	ours := maps.Clone(l.nodes)
	l.mu.Unlock()
	seen := read()
	if len(ours) == 0 {
		return seen
	}
	all := slices.Clone(seen)
	for i, n := range all {
		if mine, ok := ours[n.ID]; ok {
			all[i] = mine
			delete(ours, n.ID)
		}
	}
	return slices.AppendSeq(all, maps.Values(ours))
}

// busy lists the requests in our hands.
func (l *ledger) busy() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}
