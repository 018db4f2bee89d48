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

// build notes a build until undo is called.
func (d *doing) build(image, id string) (undo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.builds == nil {
		d.builds = map[string]string{}
	}
	d.builds[image] = id
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.builds, image)
	}
}

// upload notes an upload by its key until undo is called.
func (d *doing) upload(key string) (undo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uploads == nil {
		d.uploads = map[string]bool{}
	}
	d.uploads[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.uploads, key)
	}
}

// of is what concerns an image.
func (d *doing) of(image string) plan.Doing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return plan.Doing{Builds: d.builds[image], Uploads: maps.Clone(d.uploads)}
}
