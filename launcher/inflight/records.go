package inflight

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// retirePause is between two barriers of what is done.
const retirePause = 10 * time.Millisecond

// View is what a session sees of the tree: a zkmodel.Mirror.
type View interface {
	Nodes() []*zkmodel.Node
	// DeferRequest lets changes of a request show up late, until Resume; DeferNodes does
	// so for nodes.
	DeferRequest(id string)
	DeferNodes(ids ...string)
	Resume(requests, nodes []string)
	// Settle resumes, and returns once all is shown that was committed before.
	Settle(ctx context.Context, requests, nodes []string) error
}

// Records are the requests and nodes in this session's hands, and what is seen of them
// meanwhile. The view follows our own writes a moment later, and is asked to read back
// only the last of them; until it has, Records knows better. So, at any time:
//
//   - A record that the view need not follow closely is in our hands.
//   - A record stays in our hands until the view shows how it ended.
//   - Nodes shows a node of ours as it was last written, and counts each node at least
//     once: one that is let go while the view is read, as it was.
type Records struct {
	view   View
	log    hclog.Logger
	notify func() // something has been let go

	mu       sync.Mutex
	requests map[string]bool
	begun    map[string]bool          // of requests, those that the view follows late
	nodes    map[string]*zkmodel.Node // copies, as last written
	ended    struct{ requests, nodes []string }
	done     chan struct{} // there is something in ended
}

// NewRecords makes one that holds nothing. notify wakes the goroutine that decides over requests.
func NewRecords(view View, log hclog.Logger, notify func()) *Records {
	return &Records{
		view: view, log: log, notify: notify,
		requests: map[string]bool{}, begun: map[string]bool{}, nodes: map[string]*zkmodel.Node{}, done: make(chan struct{}, 1),
	}
}

// Take takes a request into our hands; false when it is there already.
func (r *Records) Take(request string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests[request] {
		return false
	}
	r.requests[request] = true
	return true
}

// Drop lets a request go that nothing was done to. One that we have begun with stays
// until Finish has let it go.
func (r *Records) Drop(request string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun[request] {
		delete(r.requests, request)
	}
}

// Begin says that we write a request of ours from here on: the view need not follow
// each step.
func (r *Records) Begin(request string) {
	r.mu.Lock()
	r.begun[request] = true
	r.mu.Unlock()
	r.view.DeferRequest(request)
}

// Undo says that what Begin announced was not written.
func (r *Records) Undo(request string) {
	r.view.Resume([]string{request}, nil)
	r.mu.Lock()
	delete(r.begun, request)
	r.mu.Unlock()
}

// Created keeps a copy of a node that we have made, and write from here on.
func (r *Records) Created(n *zkmodel.Node) {
	r.Note(n)
	r.view.DeferNodes(n.ID)
}

// Note keeps a copy of a node of ours as it was written.
func (r *Records) Note(n *zkmodel.Node) {
	known := *n
	known.Locked = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[n.ID] = &known
}

// Finish marks a request and its nodes as done. They stay in our hands until
// the view shows how they ended.
func (r *Records) Finish(request string, nodes ...string) { r.finish([]string{request}, nodes) }

// FinishNode marks a node as done that belongs to no request of ours.
func (r *Records) FinishNode(id string) { r.finish(nil, []string{id}) }

func (r *Records) finish(requests, nodes []string) {
	r.mu.Lock()
	r.ended.requests = append(r.ended.requests, requests...)
	r.ended.nodes = append(r.ended.nodes, nodes...)
	r.mu.Unlock()
	select {
	case r.done <- struct{}{}:
	default:
	}
}

// Retire lets go of what is done, as soon as the view shows how it ended, until ctx
// ends. One barrier serves all that has gathered; in a burst it is a moment until the
// next.
func (r *Records) Retire(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.done:
		}
		if clock.Sleep(ctx, r.retire(ctx)) != nil {
			return
		}
	}
}

// retire does so once. It returns how long to leave it alone then.
func (r *Records) retire(ctx context.Context) time.Duration {
	r.mu.Lock()
	requests, nodes := r.ended.requests, r.ended.nodes
	r.ended.requests, r.ended.nodes = nil, nil
	r.mu.Unlock()
	err := r.view.Settle(ctx, requests, nodes)
	if err == nil {
		r.forget(requests, nodes)
		r.notify()
		return retirePause
	}
	if ctx.Err() != nil {
		return retirePause
	}
	r.log.Warn("Cannot see how requests ended; they stay ours for a moment", "requests", len(requests), "error", err)
	r.finish(requests, nodes)
	return ShortPause
}

// End has the view follow all that is still in our hands: nobody writes any more.
func (r *Records) End() {
	r.mu.Lock()
	requests, nodes := slices.Collect(maps.Keys(r.requests)), slices.Collect(maps.Keys(r.nodes))
	r.mu.Unlock()
	r.view.Resume(requests, nodes)
}

// forget lets requests and nodes go.
func (r *Records) forget(requests, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range requests {
		delete(r.requests, id)
		delete(r.begun, id)
	}
	for _, id := range nodes {
		delete(r.nodes, id)
	}
}

// Mine reports whether a node is in our hands.
func (r *Records) Mine(node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node] != nil
}

// Requests are those in our hands.
func (r *Records) Requests() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.requests)
}

// Nodes are those that the view shows, our own as we wrote them last.
func (r *Records) Nodes() []*zkmodel.Node {
	r.mu.Lock()
	ours := maps.Clone(r.nodes)
	r.mu.Unlock()
	seen := r.view.Nodes()
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
