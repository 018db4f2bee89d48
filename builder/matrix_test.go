package builder

import (
	"fmt"
	"slices"
	"testing"

	"poolkeeper/zkmodel"
)

// scenario brings a builder to some steps.
type scenario struct {
	steps []Step
	// before brings the tree to where the builder begins.
	before func(s *site, c child)
	change func(c *child) // of the builder that dies
	also   func(c *child) // of all builders
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"a missing image": {steps: []Step{
			StepBuildLocked, StepBuildRecorded, StepBuildNoted, StepBuildCommanded, StepBuildSummed, StepBuildReady,
			StepUploadLocked, StepUploadRecorded, StepUploadSent, StepUploadReady,
		}},
		"a request": {
			steps:  []Step{StepBuildServed},
			before: func(s *site, _ child) { s.request() },
		},
		"a build that fails": {
			steps:  []Step{StepBuildFailed},
			change: func(c *child) { c.Env = map[string]string{"FAKE_FAIL": "1"} },
		},
		"an upload that fails": {
			steps:  []Step{StepUploadFailed},
			change: func(c *child) { c.UploadsFail = true },
		},
		"a third build": {
			steps: []Step{
				StepDeleteMarked, StepDeleteCloud, StepDeleteUpload, StepBuildMarked, StepBuildDeleted, StepFilesRemoved,
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
			steps: []Step{StepReclaimCloud, StepReclaimUpload},
			before: func(s *site, c child) {
				c.At = StepUploadSent
				c.spawn(s.t).dies(s.t)
			},
		},
		"delete-after-upload": {
			steps: []Step{StepFormatRemoved},
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

// A builder dies at a step and is started again, or another takes over. Then
// everything is in order, and what was ready before is there.
func TestCrashMatrix(t *testing.T) {
	hit := map[Step]bool{}
	for name, sc := range scenarios() {
		for _, step := range sc.steps {
			hit[step] = true
			for _, heir := range []string{"one", "two"} {
				t.Run(fmt.Sprintf("%s/%s/then %s", name, step, heir), func(t *testing.T) {
					t.Parallel()
					sc.crash(t, step, heir)
				})
			}
		}
	}
	for _, step := range Steps() {
		if !hit[step] {
			t.Errorf("no scenario reaches %q", step)
		}
	}
	t.Logf("steps: %q", Steps())
}

func (sc scenario) crash(t *testing.T, step Step, heir string) {
	t.Helper()
	s, c := newSiteOf(t)
	if sc.also != nil {
		sc.also(&c)
	}
	if sc.before != nil {
		sc.before(s, c)
	}
	var ready []string
	for _, b := range s.builds("img", zkmodel.BuildReady) {
		ready = append(ready, b.ID)
	}
	dying := c
	dying.At = step
	if sc.change != nil {
		sc.change(&dying)
	}
	dying.spawn(t).dies(t)

	next := c
	next.Host = heir
	p := next.spawn(t)
	s.settled(heir)
	left := s.builds("img", zkmodel.BuildReady)
	if len(ready) > 0 && !slices.Contains(ready, left[0].ID) {
		t.Errorf("%v were ready, left are %s and later", ready, left[0].ID)
	}
	if heir == "one" {
		return
	}
	// The host that died comes back, and cleans its own disk.
	p.stop()
	c.spawn(t)
	s.settled("one", "two")
}
