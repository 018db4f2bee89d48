package main

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// imageBuildCancelCmd gives up a build that is under way, or else the request for one.
type imageBuildCancelCmd struct {
	Image string `arg:"" help:"The image; it need not be configured any more."`
}

// Run is the command.
func (c imageBuildCancelCmd) Run(ctx context.Context, a *app) error {
	if err := configs.CheckName("image", c.Image); err != nil {
		return err
	}
	return a.withStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		done, err := operator(store).CancelBuild(ctx, c.Image)
		switch {
		case done.Build != "":
			_, printed := fmt.Fprintf(a.stdout, "Build %s-%s is being cancelled\n", c.Image, done.Build)
			err = errors.Join(printed, err)
		case err == nil:
			_, err = fmt.Fprintf(a.stdout, "The request for a build of %s is withdrawn\n", c.Image)
		}
		if done.Again {
			fmt.Fprintf(a.stderr, "poolkeeper: another build of %s was asked for since; once this one has ended, image-build-cancel withdraws that\n", c.Image)
		}
		return err
	})
}
