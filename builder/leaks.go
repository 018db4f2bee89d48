package builder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// leaks remembers what looked like a leak, and since when: only what looks so
// twice is one.
type leaks struct {
	mu    sync.Mutex
	since map[string]map[string]time.Time // by provider and external id
}

// patrol looks for leaked images in all clouds, now and then, and sooner in a
// cloud that is said to lack an image.
func (l *loop) patrol(ctx context.Context) {
	tick := time.NewTicker(l.deps.LeakEvery)
	defer tick.Stop()
	soon := time.NewTicker(min(l.deps.LeakEvery, doubtEvery))
	defer soon.Stop()
	for {
		every := true
		select {
		case <-tick.C:
		case <-soon.C:
			every = false
		case <-ctx.Done():
			return
		}
		cfg := l.config.Load()
		var all sync.WaitGroup // a cloud that hangs holds up the next round, and no other cloud in this
		for i := range cfg.Providers {
			name := cfg.Providers[i].Name
			if cfg.Providers[i].Driver != configs.DriverStatic && (every || len(l.doubted(name)) > 0) {
				all.Go(func() {
					if err := l.lookForLeaks(ctx, cfg, name); err != nil && ctx.Err() == nil && !isHeld(err) {
						l.log.Warn("Cannot look for leaked images", "provider", name, "error", err)
					}
				})
			}
		}
		all.Wait()
	}
}

// lookForLeaks deletes what carries our marks, and has no record, in the second
// look that finds it so. One builder looks at a time.
func (l *loop) lookForLeaks(ctx context.Context, cfg *configs.Config, provider string) error {
	cloud, done, err := l.clouds.use(cfg, provider)
	if err != nil {
		return err
	}
	defer done()
	lock, err := recipe.NewLock(l.store.Session(), zkmodel.LeakLockPath(provider), "", recipe.EnsureParents()).Try(ctx)
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	images, err := cloud.ListImages(ctx)
	if errors.Is(err, providers.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	// Records are made before images, so what the listing shows has its record
	// in what the mirror shows from here on.
	if err := l.mirror.Barrier(ctx); err != nil {
		return err
	}
	err = l.forgetLost(ctx, provider, images)
	images = slices.DeleteFunc(images, func(i providers.Image) bool { return !l.isOrphan(provider, i) })
	for _, image := range l.leaks.second(provider, images, l.deps.Now(), l.deps.LeakEvery/2) {
		if derr := cloud.DeleteImage(ctx, image.ExternalID); derr != nil {
			err = errors.Join(err, derr)
			continue
		}
		l.metrics.leaked(provider)
		l.log.Warn("Leaked image deleted", "provider", provider, "external id", image.ExternalID, "name", image.Name,
			"image", image.Metadata[providers.MetaImage], "build", image.Metadata[providers.MetaBuild])
	}
	return err
}

// isOrphan tells whether an image was made by this installation and has no
// record.
func (l *loop) isOrphan(provider string, image providers.Image) bool {
	meta := image.Metadata
	name := meta[providers.MetaImage]
	if meta[providers.MetaSite] != l.site || name == "" || meta[providers.MetaProvider] != provider {
		return false
	}
	for _, b := range l.mirror.Image(name).Builds {
		for _, u := range b.Uploads {
			if isImageOf(meta, u.UploadKey, l.site) {
				return false
			}
		}
	}
	return true
}

// second takes over what looks like leaks now, and returns what has looked so
// for a while.
func (k *leaks) second(provider string, images []providers.Image, now time.Time, after time.Duration) []providers.Image {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.since[provider]
	since := map[string]time.Time{}
	var proven []providers.Image
	for _, image := range images {
		first, seen := before[image.ExternalID]
		if !seen {
			first = now
		}
		since[image.ExternalID] = first
		if seen && now.Sub(first) >= after {
			proven = append(proven, image)
		}
	}
	if k.since == nil {
		k.since = map[string]map[string]time.Time{}
	}
	k.since[provider] = since
	return proven
}
