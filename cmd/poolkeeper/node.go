package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// lockNode takes a node's lock, for which it waits a moment, and reads it. Who
// holds it instead is part of the error.
func lockNode(ctx context.Context, store *zkmodel.Store, id string) (*recipe.Held, *zkmodel.Node, error) {
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, n, err := store.AwaitNode(waiting, id, requestor())
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil, inUse(ctx, store, id)
	}
	return lock, n, notThere(err, id)
}

// notThere keeps the message that scripts know.
func notThere(err error, id string) error {
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Node id " + id + " not found") // Nodepool's words
	}
	return err
}

// inUse says who has a node.
func inUse(ctx context.Context, store *zkmodel.Store, id string) error {
	n, err := store.Node(ctx, id)
	if err != nil {
		return notThere(err, id)
	}
	line, err := recipe.Contenders(ctx, store.Session(), zkmodel.LockPath(n.Path()))
	if err != nil || len(line) == 0 {
		return fmt.Errorf("node %s is %s and locked by another process", id, n.State)
	}
	return fmt.Errorf("node %s is %s and locked by %q", id, n.State, line[0].Identifier)
}

// holdNode keeps a node for a person to look at, and lets go of its lock.
func holdNode(ctx context.Context, store *zkmodel.Store, n takenNode, reason string, limit time.Duration) error {
	n.node.SetState(zkmodel.NodeHold, zkmodel.EpochOf(time.Now()))
	n.node.Comment = reason
	n.node.HoldExpiration = zkmodel.Seconds(limit / time.Second)
	err := store.SaveNode(ctx, n.lock, n.node)
	return errors.Join(err, n.lock.Release(ctx))
}
