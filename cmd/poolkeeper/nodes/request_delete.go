package nodes

import (
	"context"
	"errors"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// RequestDeleteCmd gives requests up.
type RequestDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The requests, as request-list shows them."`
}

// Run is the command.
func (c RequestDeleteCmd) Run(ctx context.Context, a *app.App) error {
	return a.Each(ctx, c.IDs, deleteRequest)
}

// deleteRequest deletes one request, whoever made it. Its nodes are others' then.
func deleteRequest(ctx context.Context, store *zkmodel.Store, id string) error {
	if err := configs.CheckName("request", id); err != nil {
		return err
	}
	err := app.Operator(store).DeleteRequest(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Request id " + id + " not found" + near(ctx, store, zkmodel.RequestPath(id))) // as with nodes
	}
	return err
}
