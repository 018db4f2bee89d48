package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Mistakes: to be stopped, or to be unable to run, is told as something that was found.
func TestExitTellsWhatBecameOfIt(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errWrong, 1},
		{fmt.Errorf("site: %w", errUnmet), 1},
		{errors.Join(errors.New("locks: compile"), errWrong), 1},
		{context.Canceled, 2},
		{errors.New("compile"), 2},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%v exits with %d, want %d", c.err, got, c.want)
		}
	}
}
