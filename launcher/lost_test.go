package launcher

import (
	"testing"
	"time"

	"poolkeeper/zkmodel"
)

// A look for lost requests keeps the mark of one that is in our hands still, which
// it does not look at: nobody would take that up until the next look, a minute later.
func TestMarkOutlivesALook(t *testing.T) {
	t.Parallel()
	s := &shift{
		Launcher: &Launcher{mirror: zkmodel.NewMirror(nil, zkmodel.PartNodes|zkmodel.PartRequests|zkmodel.PartComponents, nil), now: time.Now, wake: make(chan struct{}, 1)},
		own:      newLedger(), lost: map[string]bool{},
	}
	s.own.hold("in-hand")
	s.markLost("in-hand")
	s.markLost("gone")
	s.findLost(t.Context())
	if got := s.lostRequests(); !got["in-hand"] || len(got) != 1 {
		t.Errorf("lost are %v", got)
	}
	s.own.drop("in-hand")
	s.findLost(t.Context())
	if got := s.lostRequests(); len(got) != 0 {
		t.Errorf("lost are %v when none is pending", got)
	}
}
