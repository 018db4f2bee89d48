package builder

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/statsd"
	"poolkeeper/zkmodel"
)

// statsEvery is how often what there is is told: Nodepool's builder does so each time that it
// cleans up.
const statsEvery = time.Minute

// What a builder does about an image, as Nodepool numbers it.
const (
	statIdle      = 0
	statBuilding  = 1
	statUploading = 2
	statPaused    = 3
)

// stats sends the figures of a builder to statsd, by Nodepool's names. Without a client it
// does nothing.
//
// docs/metrics.md has the names.
type stats struct {
	to   *statsd.Client
	host string
	now  func() time.Time

	mu        sync.Mutex
	building  map[string]int            // by image
	uploading map[zkmodel.UploadKey]int // by image and provider
}

func newStats(to *statsd.Client, host string, now func() time.Time) *stats {
	return &stats{to: to, host: host, now: now, building: map[string]int{}, uploading: map[zkmodel.UploadKey]int{}}
}

// builds notes that a build of an image begins (1) or ends (-1).
func (s *stats) builds(image string, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.building[image] += change
}

// uploads notes that an upload begins (1) or ends (-1).
func (s *stats) uploads(image, provider string, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploading[zkmodel.UploadKey{Image: image, Provider: provider}] += change
}

// built tells of a build that is ready or has failed. The size of a file is what it takes on
// the disk: holes of a sparse one are nothing.
func (s *stats) built(b *zkmodel.Build, files map[string]disk.File) {
	if !s.to.On() {
		return
	}
	const root = "nodepool.dib_image_build"
	for _, format := range slices.Sorted(maps.Keys(files)) {
		s.to.Gauge(files[format].OnDisk, root, b.Image, format, "size")
	}
	s.to.Timing(time.Duration(b.Phases["command"]*float64(time.Second)), root, b.Image, "status.duration")
	code := b.ExitCode
	if b.State == zkmodel.BuildFailed && code == 0 { // it was ended, or its output was wrong
		code = 1
	}
	s.to.Gauge(int64(code), root, b.Image, "status.rc")
	s.to.Gauge(s.now().Unix(), root, b.Image, "status.last_build")
}

// uploaded tells of an upload that the provider has.
func (s *stats) uploaded(u *zkmodel.Upload, took time.Duration) {
	s.to.Timing(took, "nodepool.image_update", u.Image, u.Provider)
	s.to.Count("nodepool.image_update", u.Image, u.Provider)
}

// run tells of what there is, until ctx ends.
func (s *stats) run(ctx context.Context, config func() *configs.Config, image func(name string) *zkmodel.Image) {
	for s.to.On() && clock.Sleep(ctx, statsEvery) == nil {
		s.tell(config(), image)
	}
}

// tell tells of each image what this builder does about it, and whether a build is asked for.
func (s *stats) tell(cfg *configs.Config, of func(name string) *zkmodel.Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := int64(0)
	for _, d := range cfg.DiskImages {
		image, state, requested := of(d.Name), int64(statIdle), int64(0)
		switch {
		case d.Pause || image.Paused:
			state = statPaused
		case s.building[d.Name] > 0:
			state = statBuilding
		}
		s.to.Gauge(state, "nodepool.builder", s.host, "image", d.Name, "build.state")
		for _, p := range cfg.ProvidersOf(d.Name) {
			state := int64(statIdle)
			switch there, _ := p.Image(d.Name); {
			case there.Pause:
				state = statPaused
			case s.uploading[zkmodel.UploadKey{Image: d.Name, Provider: p.Name}] > 0:
				state = statUploading
			}
			s.to.Gauge(state, "nodepool.builder", s.host, "image", d.Name, "provider", p.Name, "upload.state")
		}
		if image.BuildRequested != nil && s.building[d.Name] == 0 {
			requested = 1
		}
		s.to.Gauge(requested, "nodepool.image", d.Name, "image_build_requests")
		requests += requested
	}
	s.to.Gauge(requests, "nodepool.image_build_requests")
}
