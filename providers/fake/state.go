package fake

import (
	"maps"
	"time"

	"poolkeeper/providers"
)

// image is one image of the pretended cloud.
type image struct {
	providers.Image
	Active bool // false while its bytes are still coming
}

// node is one machine of the pretended cloud.
type node struct {
	ID       string
	NodeID   string
	Name     string
	AZ       string
	Image    string
	Metadata map[string]string
	Ready    time.Time // when it has booted
	Address  string    `json:",omitempty"` // of the network, where there is one
	Down     string    `json:",omitempty"` // why it cannot be used
}

// event is one change of the table: exactly one field is set.
type event struct {
	Image       *image `json:",omitempty"` // added, or replaced
	Node        *node  `json:",omitempty"` // added
	ImageGone   string `json:",omitempty"`
	MachineGone string `json:",omitempty"`
}

// state is the table, and the index that makes creation idempotent.
type state struct {
	images map[string]image
	nodes  map[string]node
	byNode map[string]string        // NodeID to ID
	gone   map[string]chan struct{} // closed when the node of that ID goes; made for waiters only
}

func newState() *state {
	return &state{
		images: map[string]image{}, nodes: map[string]node{},
		byNode: map[string]string{}, gone: map[string]chan struct{}{},
	}
}

// apply is the only writer of the table, so that a replay of all events in
// another process gives the same table.
func (s *state) apply(e event) {
	switch {
	case e.Image != nil:
		s.images[e.Image.ExternalID] = *e.Image
	case e.Node != nil:
		s.nodes[e.Node.ID] = *e.Node
		s.byNode[e.Node.NodeID] = e.Node.ID
	case e.ImageGone != "":
		delete(s.images, e.ImageGone)
	case e.MachineGone != "":
		if id := s.nodes[e.MachineGone].NodeID; s.byNode[id] == e.MachineGone { // else a later launch has it
			delete(s.byNode, id)
		}
		delete(s.nodes, e.MachineGone)
		if c, ok := s.gone[e.MachineGone]; ok {
			close(c)
			delete(s.gone, e.MachineGone)
		}
	}
}

// waitGone gives the channel that closes when the node goes.
func (s *state) waitGone(id string) <-chan struct{} {
	c, ok := s.gone[id]
	if !ok {
		c = make(chan struct{})
		s.gone[id] = c
	}
	return c
}

// wakeOrphans ends the waits for nodes that a replayed table no longer has.
func (s *state) wakeOrphans() {
	for id, c := range s.gone {
		if _, ok := s.nodes[id]; !ok {
			close(c)
			delete(s.gone, id)
		}
	}
}

func (s *state) size() int { return len(s.images) + len(s.nodes) }

// events is the shortest history that leads to this table.
func (s *state) events() []event {
	all := make([]event, 0, len(s.images)+len(s.nodes))
	for i := range maps.Values(s.images) {
		all = append(all, event{Image: &i})
	}
	for n := range maps.Values(s.nodes) {
		all = append(all, event{Node: &n})
	}
	return all
}
