package control

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"poolkeeper/builder/actions"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel/recipe"
)

// Who met another's lock tries again before long and is not told of; who met an error
// waits longer each time; what is no longer wanted, or was done, begins anew. Catches: a
// failing action that is tried without a pause, and one that worked but waits as if it
// had failed.
func TestRetries(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	a := plan.Action{Kind: plan.DeleteBuild, Image: "img", Build: "0000000001"}
	held, broken := fmt.Errorf("delete: %w", recipe.ErrLocked), errors.New("no route to host")
	r := retries{}
	if r.note(a.Key(), now, held) {
		t.Error("another's lock is told of as an error")
	}
	_, soon := r.ready([]plan.Action{a}, now)
	if wait := soon.Sub(now); wait <= 0 || wait > time.Second {
		t.Errorf("behind another's lock it waits %s", wait)
	}
	var before time.Duration
	for n := range 4 {
		if !r.note(a.Key(), now, broken) {
			t.Error("an error is not told of")
		}
		ready, next := r.ready([]plan.Action{a}, now)
		if wait := next.Sub(now); len(ready) > 0 || wait <= before {
			t.Errorf("after error %d it waits %s, before that %s; ready: %v", n+1, wait, before, ready)
		} else {
			before = wait
		}
	}
	if ready, _ := r.ready([]plan.Action{a}, now.Add(before)); len(ready) != 1 {
		t.Error("it is not tried again when its time has come")
	}
	if r.note(a.Key(), now, actions.ErrRecorded) {
		t.Error("a failure that its record tells is told of twice")
	} else if ready, _ := r.ready([]plan.Action{a}, now); len(ready) > 0 {
		t.Error("an upload that failed does not wait where its record goes")
	}
	for what, err := range map[string]error{"done": nil, "no longer wanted": fmt.Errorf("x: %w", actions.ErrStale)} {
		r.note(a.Key(), now, broken)
		r.note(a.Key(), now, err)
		if ready, _ := r.ready([]plan.Action{a}, now); len(ready) != 1 {
			t.Errorf("%s: it waits", what)
		}
	}
}

// What waits keeps its place when an image is decided about again, what runs is not
// queued a second time, and a build that was asked for goes first. Catches: an image that
// changes all the time and so never gets to the front, and a build that is begun twice.
func TestQueueKeepsPlaces(t *testing.T) {
	build := func(image string, requested bool) plan.Action {
		return plan.Action{Kind: plan.Build, Image: image, Requested: requested}
	}
	q := newQueue(1, 1)
	for _, image := range []string{"a", "b", "c"} {
		q.set(image, []plan.Action{build(image, false)})
	}
	q.set("a", []plan.Action{build("a", false)}) // decided about again
	first := q.next()
	if first == nil || first.Image != "a" {
		t.Fatalf("first: %+v", first)
	}
	q.set("a", []plan.Action{build("a", false)})
	if q.next() != nil {
		t.Fatal("there is one worker, and it is busy")
	}
	q.set("c", []plan.Action{build("c", true)}) // somebody asks for it
	q.done(first)
	for _, want := range []string{"c", "b"} {
		got := q.next()
		if got == nil || got.Image != want {
			t.Fatalf("got %+v, want %s", got, want)
		}
		q.done(got)
	}
	if left := q.next(); left != nil {
		t.Errorf("left: %+v", left)
	}
}
