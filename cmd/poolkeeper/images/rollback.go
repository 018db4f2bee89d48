package images

import (
	"context"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
)

// places are the providers that a command is about.
type places struct {
	Provider []string `placeholder:"PROVIDER" help:"Only in this provider; may be given more than once."`
}

// ImageRollbackCmd takes an image back to the build before.
type ImageRollbackCmd struct {
	places
	Build   string `placeholder:"BUILDID" help:"The bad build; by default the newest that serves."`
	Pin     bool   `help:"Keep what serves then until it is released; without it the next build serves."`
	Release bool   `help:"Only release what is pinned."`
	Delete  bool   `help:"Delete the bad build's images in the clouds, so that launchers leave it which know no rollback."`
	Reason  string `placeholder:"TEXT" help:"Why, for all to see."`
	Image   string `arg:"" help:"The image."`
}

// Help is what the command's own help says.
func (*ImageRollbackCmd) Help() string {
	return "Marks the newest build that serves as bad; the one before serves, in all launchers at once. Idle ready nodes " +
		"of the bad build are deleted, those in use stay. The bad build is not uploaded there again; the next build comes " +
		"by schedule or request. image-promote takes it back."
}

// Run is the command.
func (c ImageRollbackCmd) Run(ctx context.Context, a *app.App) error {
	return a.Do(ctx, action.Order{
		Action: "image-rollback", Image: c.Image, Build: c.Build, Providers: c.Provider, Reason: c.Reason, Pin: c.Pin, Delete: c.Delete, Release: c.Release,
	})
}

// ImageRejectCmd says that a build is not to serve.
type ImageRejectCmd struct {
	places
	Delete bool   `help:"Delete its images in the clouds, so that launchers leave it which know no rejection."`
	Reason string `placeholder:"TEXT" help:"Why, for all to see."`
	ID     string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`
}

// Run is the command.
func (c ImageRejectCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := zkmodel.ParseBuildName(c.ID)
	if err != nil {
		return err
	}
	return a.Do(ctx, action.Order{Action: "image-reject", Image: image, Build: build, Providers: c.Provider, Reason: c.Reason, Delete: c.Delete})
}

// ImagePromoteCmd takes back what was said of a build.
type ImagePromoteCmd struct {
	places
	ID string `arg:"" help:"The build, as dib-image-list shows it: IMAGE-BUILDID."`
}

// Run is the command.
func (c ImagePromoteCmd) Run(ctx context.Context, a *app.App) error {
	image, build, err := zkmodel.ParseBuildName(c.ID)
	if err != nil {
		return err
	}
	return a.Do(ctx, action.Order{Action: "image-promote", Image: image, Build: build, Providers: c.Provider})
}
