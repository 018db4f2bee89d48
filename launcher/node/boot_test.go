package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/providers"
)

// machine boots after a while.
type machine struct {
	after time.Duration
	err   error
}

func (m machine) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	select {
	case <-time.After(m.after):
		return providers.Instance{ExternalID: id}, m.err
	case <-ctx.Done():
		return providers.Instance{}, context.Cause(ctx)
	}
}

// The id of a machine that boots slowly is noted, once: not noted, a launcher that dies
// leaves a machine that its successor has to search for; noted always, each node costs
// one write more. A note that fails ends the wait, as the node's lock is lost then.
func TestBoot(t *testing.T) {
	lost := errors.New("the lock is lost")
	for name, c := range map[string]struct {
		machine machine
		note    error
		noted   int
		slow    int
		err     error
	}{
		"at once":          {machine: machine{after: noteTime / 2}},
		"slowly":           {machine: machine{after: time.Minute}, noted: 1, slow: 1},
		"never, said soon": {machine: machine{err: providers.ErrNodeFailed}, err: providers.ErrNodeFailed},
		"never, said late": {machine: machine{after: time.Hour, err: providers.ErrNodeFailed}, noted: 1, slow: 1, err: providers.ErrNodeFailed},
		"the note fails":   {machine: machine{after: time.Hour}, note: lost, noted: 1, err: lost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				noted, slow := 0, 0
				i, err := Boot(t.Context(), c.machine, "vm", func() error { noted++; return c.note }, func() { slow++ })
				if noted != c.noted || slow != c.slow || !errors.Is(err, c.err) || c.err == nil && (err != nil || i.ExternalID != "vm") {
					t.Errorf("noted %d times, slow %d times, %+v (%v)", noted, slow, i, err)
				}
			})
		})
	}
}
