package builder

import (
	"errors"
	"fmt"

	"poolkeeper/configs"
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
	b.config.Store(cfg)
	if err := b.clouds.keep(cfg); err != nil {
		b.log.Warn("Provider not closed in good order", "error", err)
	}
	b.wake()
	b.log.Info("Configuration reloaded", "path", cfg.Path, "images", len(cfg.DiskImages), "providers", len(cfg.Providers))
	return nil
}

// wake makes the loop look at everything again. It never blocks.
func (b *Builder) wake() {
	select {
	case b.woken <- struct{}{}:
	default:
	}
}
