package providers_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"poolkeeper/providers"
)

// One is in at a time for a key, others have turns of their own, and who waits can be called off.
func TestTurns(t *testing.T) {
	var turns providers.Turns
	done, err := turns.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.Enter(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ended, cancel := context.WithCancelCause(t.Context())
	off := errors.New("called off")
	cancel(off)
	if _, err := turns.Enter(ended, "a"); !errors.Is(err, off) {
		t.Errorf("who is called off gets %v", err)
	}
	in := 0 // the turn holds it
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			done, err := turns.Enter(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			if in++; in != 1 {
				t.Errorf("%d are in", in)
			}
			in--
			done()
		})
	}
	done()
	group.Wait()
}
