package node

import (
	"context"

	"poolkeeper/providers"
)

// Watched does what a machine is waited for, and gives up at once when the machine
// fails. What the provider saw is then the error, also when the work was done.
func Watched(ctx context.Context, p any, id string, work func(context.Context) error) error {
	watcher, ok := p.(providers.Watcher)
	if !ok {
		return work(ctx)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	working, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	seen := make(chan error, 1)
	go func() {
		err := watcher.WatchNode(watching, id)
		if err != nil {
			giveUp(err)
		}
		seen <- err
	}()
	err := work(working)
	stop()
	if failed := <-seen; failed != nil {
		return failed
	}
	return err
}
