package builder

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// series remembers which images, providers and sources the figures tell of: what has gone from
// configuration, tree and disk is to leave no line behind.
type series struct {
	mu                sync.Mutex
	images, providers map[string]bool
	sources           map[string]bool
}

// noteSource remembers a source.
func (s *series) noteSource(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources == nil {
		s.sources = map[string]bool{}
	}
	s.sources[name] = true
}

// goneSources takes out, and returns, the sources that are no more.
func (s *series) goneSources(there func(string) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return takeGone(s.sources, there)
}

// note remembers an image and a provider; "" is none.
func (s *series) note(image, provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.images == nil {
		s.images, s.providers = map[string]bool{}, map[string]bool{}
	}
	s.images[image], s.providers[provider] = image != "", provider != ""
}

// gone takes out, and returns, what is no more.
func (s *series) gone(image, provider func(string) bool) (images, providers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return takeGone(s.images, image), takeGone(s.providers, provider)
}

func takeGone(names map[string]bool, there func(string) bool) (gone []string) {
	for name, used := range names {
		if used && !there(name) {
			gone = append(gone, name)
			delete(names, name)
		}
	}
	return gone
}

// forget deletes the lines of images and providers that are no more.
func (m *metrics) forget(image, provider func(string) bool) {
	images, providers := m.series.gone(image, provider)
	drop := func(label string, names []string) {
		for _, name := range names {
			for _, vec := range m.named() {
				vec.DeletePartialMatch(prometheus.Labels{label: name})
			}
		}
	}
	drop("image", images)
	drop("provider", providers)
}

// named are the figures by image or provider.
func (m *metrics) named() []interface {
	DeletePartialMatch(labels prometheus.Labels) int
} {
	return []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}{m.builds, m.buildTime, m.size, m.lastBuild, m.requested, m.uploads, m.uploadIn, m.leaks, m.tried, m.due}
}

// recorded reports whether the tree holds anything of an image, or may.
func recorded(i *zkmodel.Image) bool {
	return len(i.Builds) > 0 || i.BuildRequested != nil || i.Unread != nil
}

// forgetSeries takes the figures out of images and providers that are in neither the
// configuration nor the tree.
func (b *Builder) forgetSeries() {
	if b.mirror.Unread(zkmodel.ImagesRoot) != nil {
		return // there may be more than we see
	}
	cfg := b.config.Load()
	builds, uploads := map[string]bool{}, map[string]bool{}
	for _, image := range b.mirror.Images() {
		builds[image.Name] = recorded(image)
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				uploads[u.Provider] = true
			}
		}
	}
	disk := b.images.Names()
	b.metrics.forget(
		func(image string) bool {
			_, configured := cfg.DiskImage(image)
			return configured || builds[image] || slices.Contains(disk, image)
		},
		func(provider string) bool {
			_, configured := cfg.Provider(provider)
			return configured || uploads[provider] ||
				slices.ContainsFunc(cfg.Skipped, func(p configs.SkippedProvider) bool { return p.Name == provider })
		})
}
