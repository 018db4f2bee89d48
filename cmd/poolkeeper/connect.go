package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// connect returns a session, which a command waits for no longer than
// --zookeeper-wait. What keeps it waiting is told every few seconds.
func (a *app) connect(ctx context.Context, client *recipe.Client) (*recipe.Session, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, a.flags.Wait, fmt.Errorf("no answer within %s", a.flags.Wait))
	defer cancel()
	teller := newTeller(a.stderr)
	defer teller.end()
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
		teller.say(fmt.Sprintf("still trying to reach ZooKeeper, up to %s: %v", a.flags.Wait, err))
	}
}

// errStillWaiting ends a part of a wait.
var errStillWaiting = errors.New("no session yet")
