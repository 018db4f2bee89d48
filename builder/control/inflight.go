package control

import (
	"maps"
	"sync"

	"poolkeeper/builder/plan"
)

// InFlight is what runs in this process, so that nobody takes it for a leftover.
type InFlight struct {
	mu      sync.Mutex
	builds  map[string]string // id of the build by image
	uploads map[string]bool
	begins  map[string]bool // images of which a build may begin, or has
	sends   map[string]bool // keys of uploads that may begin, or have
	ends    bool            // see Finish
}

// Begin notes that a build of an image may begin, until the function that it returns is
// called. It is called before it is looked whether builds may begin: so who forbids them
// first and counts afterwards counts each build that has not seen that.
func (d *InFlight) Begin(image string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begins == nil {
		d.begins = map[string]bool{}
	}
	d.begins[image] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.begins, image)
	}
}

// BeginUpload is Begin of an upload, by its key: it is called before it is looked whether
// this builder ends.
func (d *InFlight) BeginUpload(key string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sends == nil {
		d.sends = map[string]bool{}
	}
	d.sends[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.sends, key)
	}
}

// Finish reports whether there are no builds and uploads. If so no upload begins from then
// on, until GoOn; builds are forbidden by who has paused the builder.
func (d *InFlight) Finish() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	builds, uploads := d.count()
	d.ends = builds+uploads == 0
	return d.ends
}

// GoOn lets uploads begin.
func (d *InFlight) GoOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = false
}

// Build notes the build of an image.
func (d *InFlight) Build(image, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.builds == nil {
		d.builds = map[string]string{}
	}
	d.builds[image] = id
}

// Upload notes an upload by its key.
func (d *InFlight) Upload(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uploads == nil {
		d.uploads = map[string]bool{}
	}
	d.uploads[key] = true
}

// end forgets what an action was about. It is called when the mirror shows how
// that ended, so that nobody takes the last thing that it showed for a leftover.
func (d *InFlight) end(a plan.Action) {
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

// Count is how many builds and uploads there are, with those that may begin.
func (d *InFlight) Count() (builds, uploads int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count()
}

func (d *InFlight) count() (builds, uploads int) {
	builds, uploads = len(d.builds), len(d.uploads)
	for image := range d.begins {
		if _, noted := d.builds[image]; !noted {
			builds++
		}
	}
	for key := range d.sends {
		if !d.uploads[key] {
			uploads++
		}
	}
	return builds, uploads
}

// of is what concerns an image.
func (d *InFlight) of(image string) plan.InFlight {
	d.mu.Lock()
	defer d.mu.Unlock()
	return plan.InFlight{Builds: d.builds[image], Uploads: maps.Clone(d.uploads), Ends: d.ends}
}
