package main

import (
	"context"
	"errors"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// requestDeleteCmd gives requests up.
type requestDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The requests, as request-list shows them."`
}

// Run is the command.
func (c requestDeleteCmd) Run(ctx context.Context, a *app) error {
	return a.each(ctx, c.IDs, deleteRequest)
}

// deleteRequest deletes one request, whoever made it. Its nodes are others' then.
func deleteRequest(ctx context.Context, store *zkmodel.Store, id string) error {
	if err := configs.CheckName("request", id); err != nil {
		return err
	}
	err := operator(store).DeleteRequest(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Request id " + id + " not found") // as with nodes
	}
	return err
}
