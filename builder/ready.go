package builder

import (
	"cmp"
	"context"
	"errors"

	"poolkeeper/builder/dib"
	"poolkeeper/zkmodel"
)

// What a builder that is not ready has to say.
var (
	errNoSession = errors.New("no session with ZooKeeper")
	errStuck     = errors.New("the builder does not answer")
)

// Ready tells whether the builder does its work: nil, or why it does not.
func (b *Builder) Ready() error {
	if !b.working.Load() {
		return errNoSession
	}
	return nil
}

// Check asks the builder's loop for a sign of life, until ctx ends. A builder
// that waits for ZooKeeper is alive.
func (b *Builder) Check(ctx context.Context) error {
	if !b.working.Load() {
		return nil
	}
	select {
	case b.pulse <- struct{}{}:
		return nil
	case <-ctx.Done():
		if !b.working.Load() {
			return nil
		}
		return errStuck
	}
}

// LogPath is the file of a build's log on this host.
func (b *Builder) LogPath(image, build string) string {
	return dib.LogPath(cmp.Or(b.config.Load().BuildLogDir, dib.DefaultLogDir), image, build)
}

// Tree is the builder's view of images and components, for those who show it.
func (b *Builder) Tree() *zkmodel.Mirror { return b.mirror }
