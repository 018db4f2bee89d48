package main

import (
	"context"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// ltimeCmd is `poolkeeper ltime`.
type ltimeCmd struct{}

// Help is what the command's own help says.
func (*ltimeCmd) Help() string {
	return "All that was written to ZooKeeper before is older than the number that it prints. A daemon's " +
		"listing waits until it shows that moment: curl http://HOST:8005/image-list?ltime=NUMBER"
}

// Run prints the logical time.
func (*ltimeCmd) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		ltime, err := store.Ltime(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.stdout, ltime)
		return err
	})
}
