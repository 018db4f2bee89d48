package recipe

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// change is one watch event: what fired at which path below the chroot.
type change struct {
	path string
	kind zk.EventType
}

// route passes the watch events at and below a path to a function, which runs
// in the goroutine that reads the connection and must not block.
type route struct {
	root string
	to   func(change)
}

// onChange routes watch events below root to f until cancel is called. The
// library sends each event to the channel of its watch as well; with one channel
// read by nobody, hundreds of thousands of watches need no goroutine.
func (s *Session) onChange(root string, f func(change)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRoute++
	id := s.lastRoute
	s.routes[id] = route{root, f}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.routes, id)
	}
}

// dispatch is the library's event callback.
func (s *Session) dispatch(ev zk.Event) {
	if ev.Type < zk.EventNodeCreated || ev.Type > zk.EventNodeChildrenChanged {
		return
	}
	path, ok := s.rel(ev.Path)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.routes {
		if within(r.root, path) {
			r.to(change{path, ev.Type})
		}
	}
}

// within reports whether path is root or below it.
func within(root, path string) bool {
	if root == "/" {
		return true
	}
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}
