package images

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// ImageBuildCancelCmd gives up a build that is under way, or else the request for one.
type ImageBuildCancelCmd struct {
	Image string `arg:"" help:"The image; it need not be configured any more."`
}

// Run is the command.
func (c ImageBuildCancelCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("image", c.Image); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, _ *configs.Config, store *zkmodel.Store) error {
		done, err := app.Operator(store).CancelBuild(ctx, c.Image)
		switch {
		case done.Build != "":
			_, printed := fmt.Fprintf(a.Stdout, "Build %s-%s is being cancelled\n", c.Image, done.Build)
			err = errors.Join(printed, err)
		case err == nil && len(done.Waves) > 0:
			_, err = fmt.Fprintf(a.Stdout, "The request for a build of %s is withdrawn; cancelled with it: wave %s\n", c.Image, strings.Join(done.Waves, ", wave "))
		case err == nil:
			_, err = fmt.Fprintf(a.Stdout, "The request for a build of %s is withdrawn\n", c.Image)
		}
		if done.Again {
			fmt.Fprintf(a.Stderr, "poolkeeper: another build of %s was asked for since; once this one has ended, image-build-cancel withdraws that\n", c.Image)
		}
		return err
	})
}
