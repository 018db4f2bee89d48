// Package operate is what people do with images and nodes: commands and pages call it (by
// zkmodel/action), so that both do the same, under the same locks, by the same tables.
package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// LockWait is how long an operation waits for the lock of a record, as Nodepool's
// commands do.
const LockWait = 5 * time.Second

// ErrDecodable says that a record is not broken, so that it is deleted as others are.
var ErrDecodable = errors.New("its record can be decoded")

// Operator does what one person asks for.
type Operator struct {
	store *zkmodel.Store
	who   string
	now   func() time.Time
}

// New makes an Operator. who is written where people see who did it: "name@host", with
// RequestorMark before it for those who are no Zuul.
func New(store *zkmodel.Store, who string) *Operator {
	return &Operator{store: store, who: who, now: func() time.Time { return store.Session().Clock().Now() }}
}

// LockNode takes a node's lock, for which it waits a moment, and reads the node. Who
// holds the lock instead is part of the error.
//
// Errors: zkmodel.ErrNotFound.
func (o *Operator) LockNode(ctx context.Context, id string) (*recipe.Held, *zkmodel.Node, error) {
	waiting, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	lock, n, err := o.store.AwaitNode(waiting, id, o.who)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil, o.inUse(ctx, id)
	}
	return lock, n, err
}

// inUse says who has a node.
func (o *Operator) inUse(ctx context.Context, id string) error {
	n, err := o.store.Node(ctx, id)
	if err != nil {
		return err
	}
	line, err := recipe.Contenders(ctx, o.store.Session(), zkmodel.LockPath(n.Path()))
	if err != nil || len(line) == 0 || line[0].Identifier == "" { // Nodepool's locks name no holder
		return fmt.Errorf("node %s is %s and locked by another process (%s)", id, n.State, zkmodel.LockPath(n.Path()))
	}
	return fmt.Errorf("node %s is %s and locked by %q", id, n.State, line[0].Identifier)
}

// epoch is the time that a state begins.
func (o *Operator) epoch() zkmodel.Epoch { return zkmodel.EpochOf(o.now()) }
