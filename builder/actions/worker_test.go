package actions

import (
	"context"
	"errors"
	"testing"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// fakeTree is a tree that a barrier may change.
type fakeTree struct {
	Tree    // what a test does not expect panics
	image   *zkmodel.Image
	barrier func() error
}

func (f *fakeTree) Barrier(context.Context) error { return f.barrier() }

// Snapshot is all that a decision about the image depends on.
func (f *fakeTree) Snapshot(image string) plan.Input {
	return plan.Input{
		Image: f.image, Host: plan.Host{Name: "here", ID: "my-id", Arch: "amd64", Free: -1}, Policy: plan.DefaultPolicy(),
		Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		Config: &configs.Config{
			DiskImages: []configs.DiskImage{{Name: image, Formats: []string{"raw"}}},
			Providers:  []configs.Provider{{Name: "north", ImageFormat: "raw", DiskImages: []configs.ProviderImage{{Name: image}}}},
		},
		Local: []plan.LocalBuild{{ID: "0000000001", Formats: []string{"raw"}, Ours: true}},
	}
}

// Under its lock an action is asked for again by the tree as it is then: what is no longer
// wanted is stale, and what is wanted is done as the plan has it now. Catches: a second
// copy of an image, sent by a builder that decided before the first one was there; and a
// back-off that begins anew because the failures were counted before the lock.
func TestConfirmAsksTheTreeAsItIsUnderTheLock(t *testing.T) {
	build := func(uploads ...*zkmodel.Upload) *zkmodel.Image {
		return &zkmodel.Image{Name: "img", Builds: []*zkmodel.BuildTree{{
			Build: &zkmodel.Build{
				Image: "img", ID: "0000000001", State: zkmodel.BuildReady, BuilderID: "my-id",
				Formats: zkmodel.Formats{"raw"},
			},
			Uploads: uploads,
		}}}
	}
	upload := func(state zkmodel.UploadState) *zkmodel.Upload {
		return &zkmodel.Upload{
			UploadKey: zkmodel.UploadKey{Image: "img", Build: "0000000001", Provider: "north", ID: "0000000001"},
			State:     state, Failures: 3, ExternalID: zkmodel.TextValue("id-1"),
		}
	}
	broken := errors.New("connection lost")
	for name, c := range map[string]struct {
		now      *zkmodel.Image // after the barrier
		barrier  error
		want     error
		failures int
	}{
		"still wanted":          {now: build()},
		"another has sent it":   {now: build(upload(zkmodel.UploadReady)), want: ErrStale},
		"another has failed it": {now: build(upload(zkmodel.UploadFailed)), failures: 3},
		"the build is gone":     {now: &zkmodel.Image{Name: "img"}, want: ErrStale},
		"nobody knows":          {now: build(), barrier: broken, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			tree := &fakeTree{image: build()}
			tree.barrier = func() error {
				tree.image = c.now
				return c.barrier
			}
			w := NewWorker(Deps{Tree: tree, Snapshots: tree, Deciding: func(context.Context) func() { return func() {} }})
			a := plan.Action{Kind: plan.Upload, Image: "img", Build: "0000000001", Provider: "north", Format: "raw"}
			now, _, err := w.confirm(t.Context(), a, func(d *plan.InFlight) { d.Sending = a.Key() })
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err == nil && now.Failures != c.failures {
				t.Errorf("it counts %d failures, want %d", now.Failures, c.failures)
			}
		})
	}
}

// An action that nobody can do is an error, neither stale nor another's. Catches: a new
// kind of action in plan that nothing does, in silence.
func TestUnknownActionIsAnError(t *testing.T) {
	err := NewWorker(Deps{}).Do(t.Context(), plan.Action{Kind: "brew"})
	if !errors.Is(err, errors.ErrUnsupported) || Held(err) || errors.Is(err, ErrStale) {
		t.Errorf("error %v", err)
	}
}
