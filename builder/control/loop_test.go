package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// A stop waits for what ends in time, and no longer than nine seconds for what does not;
// what ends later finds nobody, and is not held up by that. Catches: a builder that a
// cloud's library keeps from stopping, and an action that waits for ever to tell how it
// ended.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration // after its context has ended
		want  time.Duration
	}{
		"ends in time": {3 * time.Second, 3 * time.Second},
		"hangs":        {time.Minute, drainPatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := newTestLoop(func(ctx context.Context, _ plan.Action) error {
					<-ctx.Done()
					<-time.After(c.takes)
					return context.Cause(ctx)
				})
				ctx, stop := context.WithCancel(t.Context())
				l.queue.set("img", []plan.Action{upload("img")})
				l.start(ctx)
				stop()
				began := time.Now()
				l.drain(t.Context())
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				l.work.Wait() // the bubble ends only if the action does
			})
		})
	}
}

// What runs is known as running until the mirror shows how it ended. Catches: an upload
// that is forgotten a moment too early, so that the next decision takes its record for a
// dead builder's and deletes the image that was just sent.
func TestInFlightUntilTheMirrorShowsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *loop
		l, mirror, _ := newTestLoop(func(_ context.Context, a plan.Action) error {
			l.InFlight().Upload(a.Key())
			return nil
		})
		var during map[string]bool
		mirror.barrier = func() error {
			during = l.inFlight.of("img").Uploads
			return nil
		}
		l.queue.set("img", []plan.Action{upload("img")})
		l.start(t.Context())
		e := <-l.done
		l.finish(e)
		if !during[upload("img").Key()] {
			t.Error("the upload was forgotten before the mirror showed its end")
		}
		if left := l.inFlight.of("img").Uploads; len(left) > 0 || e.err != nil {
			t.Errorf("in flight after the end: %v, %v", left, e.err)
		}
		if !l.dirty["img"] {
			t.Error("nothing is decided about the image when its upload has ended")
		}
	})
}

// An upload whose build is being deleted is ended, and that is no failure: it is not
// tried again later, nor counted. Catches: back-off and errors_total for what an operator
// wanted.
func TestUploadOfADeletedBuildIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, metrics := newTestLoop(func(ctx context.Context, _ plan.Action) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		l.queue.set("img", []plan.Action{upload("img")})
		l.queue.set("other", []plan.Action{upload("other")})
		l.start(t.Context())
		build := &zkmodel.Build{Image: "img", ID: "0000000001", State: zkmodel.BuildDeleting}
		l.endUploads(&zkmodel.Image{Name: "img", Builds: []*zkmodel.BuildTree{{Build: build}}})
		e := <-l.done
		if e.Image != "img" || !errors.Is(e.err, actions.ErrStale) {
			t.Errorf("%s ended: %v", e.Image, e.err)
		}
		l.finish(e)
		if len(metrics.failed)+len(l.retries) > 0 {
			t.Errorf("it counts as a failure: %v, %v", metrics.failed, l.retries)
		}
		if len(l.queue.running) != 1 {
			t.Errorf("%d actions run, want that of the other image", len(l.queue.running))
		}
		for _, rest := range l.queue.running {
			rest.cancel(errors.New("the test is over"))
		}
		l.drain(t.Context())
	})
}
