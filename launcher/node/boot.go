package node

import (
	"context"
	"errors"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// noteTime is how long a machine may take to boot until its id is noted.
const noteTime = 250 * time.Millisecond

// Waiter waits until a machine runs.
type Waiter interface {
	WaitNode(ctx context.Context, externalID string) (providers.Instance, error)
}

// Boot waits until a machine runs. When that takes longer than noteTime, note is called,
// whose failure ends the wait; then slow, if the machine does not run yet.
func Boot(ctx context.Context, p Waiter, id string, note func() error, slow func()) (providers.Instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		instance providers.Instance
		err      error
	}
	booted := make(chan answer, 1)
	go func() {
		instance, err := p.WaitNode(ctx, id)
		booted <- answer{instance, err}
	}()
	timer := clock.NewTimer(ctx, noteTime)
	defer timer.Stop()
	var failed error
	select {
	case a := <-booted:
		return a.instance, a.err
	case <-timer.C:
		if failed = note(); failed != nil {
			cancel()
			break
		}
		select {
		case a := <-booted:
			return a.instance, a.err
		default:
		}
		slow()
	}
	a := <-booted
	return a.instance, errors.Join(failed, a.err)
}
