package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// connect returns a session, which a command waits for no longer than
// --zookeeper-wait. What keeps it waiting is told every few seconds.
func (a *App) connect(ctx context.Context, client *recipe.Client) (*recipe.Session, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, a.Flags.Wait, fmt.Errorf("no answer within %s", a.Flags.Wait))
	defer cancel()
	teller := NewTeller(a.Stderr)
	defer teller.End()
	for {
		// A part of the wait, which fails with the reason of the last connection.
		moment, over := context.WithTimeoutCause(waiting, time.Second, errStillWaiting)
		session, err := client.Session(moment)
		over()
		if err == nil {
			return session, nil
		}
		if !errors.Is(err, errStillWaiting) {
			return nil, fmt.Errorf("reach ZooKeeper: %w", err)
		}
		teller.Say(fmt.Sprintf("still trying to reach ZooKeeper, up to %s: %v", a.Flags.Wait, err))
	}
}

// errStillWaiting ends a part of a wait.
var errStillWaiting = errors.New("no session yet")
