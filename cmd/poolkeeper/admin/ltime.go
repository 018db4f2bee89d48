package admin

import (
	"context"
	"fmt"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// LtimeCmd is `poolkeeper ltime`.
type LtimeCmd struct{}

// Help is what the command's own help says.
func (*LtimeCmd) Help() string {
	return "All that was written to ZooKeeper before is older than the number that it prints. A daemon's " +
		"listing waits until it shows that moment: curl http://HOST:8005/image-list?ltime=NUMBER"
}

// Run prints the logical time.
func (*LtimeCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		ltime, err := store.Ltime(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Stdout, ltime)
		return err
	})
}
