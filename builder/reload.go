package builder

import (
	"errors"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// ErrRestart says that a new configuration changes what only a start can.
var ErrRestart = errors.New("restart needed")

// Reload goes on with another configuration. Builds and uploads under way end
// as they began; what the configuration no longer has is cleaned up, as if it
// had been so at the start.
//
// Errors: ErrRestart when images-dir has changed; the old configuration then
// stays.
func (b *Builder) Reload(cfg *configs.Config) error {
	if now := b.config.Load(); cfg.ImagesDir != now.ImagesDir {
		return fmt.Errorf("reload %s: %w: images-dir has changed from %s to %s", cfg.Path, ErrRestart, now.ImagesDir, cfg.ImagesDir)
	}
	b.followCanaries(cfg)
	b.config.Store(cfg)
	b.self.Serve(zkmodel.Served(cfg.ProviderNames()))
	if err := b.clouds.Keep(cfg); err != nil {
		b.log.Warn("Cannot close a provider; the new configuration counts all the same", "error", err)
	}
	b.knowProviders(cfg)
	b.control.Reconfigured()
	b.waves.Reconfigured()
	b.log.Info("Configuration reloaded", "path", cfg.Path, "images", len(cfg.DiskImages), "providers", len(cfg.Providers))
	return nil
}

// followCanaries follows how builds come into service, where an image has a canary: what
// serves until another is proven is not cleaned up.
func (b *Builder) followCanaries(cfg *configs.Config) {
	if cfg.HasCanary() {
		b.mirror.FollowCanaries()
	}
}
