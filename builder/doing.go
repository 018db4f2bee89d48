package builder

import (
	"maps"
	"sync"

	"poolkeeper/builder/plan"
)

// doing is what runs in this process, so that nobody takes it for a leftover.
type doing struct {
	mu      sync.Mutex
	builds  map[string]string // id of the build by image
	uploads map[string]bool
}

// build notes the build of an image.
func (d *doing) build(image, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.builds == nil {
		d.builds = map[string]string{}
	}
	d.builds[image] = id
}

// upload notes an upload by its key.
func (d *doing) upload(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uploads == nil {
		d.uploads = map[string]bool{}
	}
	d.uploads[key] = true
}

// end forgets what an action was about. It is called when the mirror shows how
// that ended, so that nobody takes the last thing that it showed for a leftover.
func (d *doing) end(a plan.Action) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch a.Kind {
	case plan.Build:
		delete(d.builds, a.Image)
	case plan.Upload:
		delete(d.uploads, a.Key())
	default:
	}
}

// of is what concerns an image.
func (d *doing) of(image string) plan.Doing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return plan.Doing{Builds: d.builds[image], Uploads: maps.Clone(d.uploads)}
}
