package history

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/history"
)

// slow is a history that is read as long as a test wants, and panics where it is told to.
type slow struct {
	reading, most, reads int
	leave                chan bool // true panics
}

func (s *slow) Find(history.Query) (*history.Answer, error) {
	s.reading++
	s.reads++
	s.most = max(s.most, s.reading)
	defer func() { s.reading-- }()
	if <-s.leave {
		panic("as net/http bears it")
	}
	return &history.Answer{}, nil
}

// Mistakes: many who ask for the JSON have a daemon read its file for all of them at once; one who has gone is read
// for all the same; one that fails keeps its turn, and nobody gets an answer any more.
func TestJSONIsMadeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{leave: make(chan bool)}
		h := &Pages{Store: s, Logger: hclog.NewNullLogger(), Now: time.Now}
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			go func() {
				defer func() { _ = recover() }()
				h.ServeJSON(w, httptest.NewRequestWithContext(ctx, http.MethodGet, Path+".json", nil))
			}()
			return w
		}
		ask(t.Context())
		synctest.Wait() // it reads, and will panic
		brief, leave := context.WithCancel(t.Context())
		gone := ask(brief)
		var others []*httptest.ResponseRecorder
		for range 3 {
			others = append(others, ask(t.Context()))
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		for _, fails := range []bool{true, false, false, false} {
			s.leave <- fails
			synctest.Wait()
		}
		if s.most != 1 || s.reads != 4 {
			t.Errorf("%d reads, %d at once", s.reads, s.most)
		}
		if gone.Body.Len() > 0 {
			t.Errorf("who had gone got %s", gone.Body)
		}
		for i, w := range others {
			if w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("answer %d: %d %s", i, w.Code, w.Body)
			}
		}
	})
}
