package builder

import (
	"fmt"
	"slices"
	"testing"

	"poolkeeper/builder/step"
	"poolkeeper/zkmodel"
)

// scenario brings a builder to some steps.
type scenario struct {
	steps []step.Step
	// before brings the tree to where the builder begins.
	before func(s *site, c child)
	change func(c *child) // of the builder that dies
	also   func(c *child) // of all builders
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"a missing image": {steps: []step.Step{
			step.BuildLocked, step.BuildRecorded, step.BuildNoted, step.BuildCommanded, step.BuildSummed, step.BuildReady,
			step.UploadLocked, step.UploadRecorded, step.UploadSent, step.UploadReady,
		}},
		"a request": {
			steps:  []step.Step{step.BuildServed},
			before: func(s *site, _ child) { s.request() },
		},
		"a build that fails": {
			steps:  []step.Step{step.BuildFailed},
			change: func(c *child) { c.Env = map[string]string{"FAKE_FAIL": "1"} },
		},
		"an upload that fails": {
			steps:  []step.Step{step.UploadFailed},
			change: func(c *child) { c.UploadsFail = true },
		},
		"a third build": {
			steps: []step.Step{
				step.DeleteMarked, step.DeleteCloud, step.DeleteUpload, step.BuildMarked, step.BuildDeleted, step.FilesRemoved,
			},
			before: func(s *site, c child) {
				p := c.spawn(s.t)
				for n := range 2 {
					s.request()
					s.ready("img", n+1, "north")
					s.settled()
				}
				p.stop()
				s.request()
			},
		},
		"what another crash left": {
			steps: []step.Step{step.ReclaimCloud, step.ReclaimUpload},
			before: func(s *site, c child) {
				c.At = step.UploadSent
				c.spawn(s.t).dies(s.t)
			},
		},
		"delete-after-upload": {
			steps: []step.Step{step.FormatRemoved},
			also:  func(c *child) { c.DeleteFiles = true },
		},
	}
}

func (s *site) request() {
	s.t.Helper()
	if err := s.store.RequestBuild(s.t.Context(), "img"); err != nil {
		s.t.Fatal(err)
	}
}

// A builder of two images and two providers dies at a step and is started again, or
// another takes over. Then everything is in order, and what was ready before is there.
func TestCrashMatrix(t *testing.T) {
	hit := map[step.Step]bool{}
	for name, sc := range scenarios() {
		for _, at := range sc.steps {
			hit[at] = true
			for _, heir := range []string{"one", "two"} {
				t.Run(fmt.Sprintf("%s/%s/then %s", name, at, heir), func(t *testing.T) {
					t.Parallel()
					sc.crash(t, at, heir)
				})
			}
		}
	}
	for _, at := range step.All() {
		if !hit[at] {
			t.Errorf("no scenario reaches %q", at)
		}
	}
	t.Logf("steps: %q", step.All())
}

func (sc scenario) crash(t *testing.T, at step.Step, heir string) {
	t.Helper()
	s, c := newSiteOf(t)
	c.Images, c.Clouds = 2, 2
	s.config = c.config()
	if sc.also != nil {
		sc.also(&c)
	}
	if sc.before != nil {
		sc.before(s, c)
	}
	ready := map[string][]string{} // by image
	for _, i := range s.config.DiskImages {
		for _, b := range s.builds(i.Name, zkmodel.BuildReady) {
			ready[i.Name] = append(ready[i.Name], b.ID)
		}
	}
	dying := c
	dying.At = at
	if sc.change != nil {
		sc.change(&dying)
	}
	dying.spawn(t).dies(t)

	next := c
	next.Host = heir
	p := next.spawn(t)
	s.settled(heir)
	for image, were := range ready {
		left := s.builds(image, zkmodel.BuildReady)
		if !slices.Contains(were, left[0].ID) {
			t.Errorf("%s: %v were ready, left are %s and later", image, were, left[0].ID)
		}
	}
	if heir == "one" {
		return
	}
	// The host that died comes back, and cleans its own disk.
	p.stop()
	c.spawn(t)
	s.settled("one", "two")
}
