package request

import (
	"testing"

	"poolkeeper/zkmodel"
)

// What was deleted while it waited is told by who wrote it last, once. Mistakes: it is told also
// by who wrote it before; again at each look; of what is still there.
func TestDeleted(t *testing.T) {
	made := func(id string, version int32) *zkmodel.Request {
		r := &zkmodel.Request{ID: id}
		r.Stat.Version = version
		return r
	}
	s := New(Deps{})
	for _, id := range []string{"ours", "others", "taken", "there"} {
		s.left[id] = made(id, 3)
	}
	s.takeUp("taken")
	if gone := s.deleted([]*zkmodel.Request{made("ours", 2), made("others", 4), made("there", 3)}); gone != nil {
		t.Errorf("%v are deleted", gone)
	}
	if gone := s.deleted([]*zkmodel.Request{made("there", 3)}); len(gone) != 1 || gone[0].ID != "ours" {
		t.Errorf("%v are deleted", gone)
	}
	if gone := s.deleted([]*zkmodel.Request{made("there", 3)}); gone != nil {
		t.Errorf("%v are deleted again", gone)
	}
}
