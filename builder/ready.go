package builder

import (
	"cmp"
	"context"
	"os"

	"poolkeeper/builder/buildlog"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Ready reports whether the builder does its work: nil, or why it does not.
//
// Errors: ErrWithdrawn, while it does all but build; ErrSameID, while it waits.
func (b *Builder) Ready() error { return b.control.Ready() }

// Check asks the builder's loop for a sign of life, until ctx ends. A builder
// that waits for ZooKeeper is alive.
func (b *Builder) Check(ctx context.Context) error { return b.control.Check(ctx) }

// LogPath is the file of a build's log on this host.
func (b *Builder) LogPath(image, build string) string {
	return buildlog.Path(cmp.Or(b.config.Load().BuildLogDir, buildlog.DefaultDir), image, build)
}

// Tree is the builder's view of images and components, for those who show it.
func (b *Builder) Tree() *zkmodel.Mirror { return b.mirror }

// Config is the configuration that the builder works by.
func (b *Builder) Config() *configs.Config { return b.config.Load() }

// HasImage reports whether the configuration has an image, or leaves it out because of
// a mistake.
func (b *Builder) HasImage(image string) bool { return b.config.Load().HasImage(image) }

// logURL is where a build's log can be read; here says whether this host has it.
func (b *Builder) logURL(image, build string) (url string, here bool) {
	_, err := os.Stat(b.LogPath(image, build))
	return b.deps.LogURL(image, build), err == nil
}
