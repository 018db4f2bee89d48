package nodes

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel/action"
)

// RequestDeleteCmd gives requests up.
type RequestDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The requests, as request-list shows them."`
}

// Run is the command.
func (c RequestDeleteCmd) Run(ctx context.Context, a *app.App) error {
	return a.Each(ctx, c.IDs, func(id string) action.Order { return action.Order{Action: "request-delete", Request: id} })
}
