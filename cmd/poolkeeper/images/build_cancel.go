package images

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel/action"
)

// ImageBuildCancelCmd gives up a build that is under way, or else the request for one.
type ImageBuildCancelCmd struct {
	Image string `arg:"" help:"The image; it need not be configured any more."`
}

// Run is the command.
func (c ImageBuildCancelCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, action.Order{Action: "image-build-cancel", Image: c.Image})
}
