package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// nodeDeleteCmd marks nodes for deletion.
type nodeDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The nodes, as list shows them."`
}

// Run is the command.
func (c nodeDeleteCmd) Run(ctx context.Context, a *app) error {
	return a.each(ctx, c.IDs, deleteNode)
}

// deleteNode leaves the rest to the launchers of the node's provider.
func deleteNode(ctx context.Context, store *zkmodel.Store, id string) error {
	if err := configs.CheckName("node", id); err != nil {
		return err
	}
	lock, n, err := lockNode(ctx, store, id)
	if err != nil {
		return err
	}
	n.SetState(zkmodel.NodeDeleting, zkmodel.EpochOf(time.Now()))
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("%s wanted it", requestor())
	}
	err = store.SaveNode(ctx, lock, n)
	if err == nil {
		err = forgetRequest(ctx, store, n.AllocatedTo)
	}
	return errors.Join(err, lock.Release(ctx))
}
