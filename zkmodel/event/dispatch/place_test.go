package dispatch_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// file is a sink of its own.
func file(dir, name string) dispatch.Sink {
	return dispatch.Sink{Name: name, File: filepath.Join(dir, name)}
}

// all waits until a sink has some events, and says how often the last of them came.
func all(t *testing.T, dir, name string, count int) {
	t.Helper()
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, name))) >= count }, "%s has %d", name, count)
	if n := len(written(t, filepath.Join(dir, name))); n != count {
		t.Errorf("%s has %d events, want %d", name, n, count)
	}
}

// Mistakes: a stop or other options that send up to 49 events again; a sink that loses its
// place while it is left out, and what came meanwhile.
func TestAStopRepeatsNothing(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	one := start(t, root, "one", options(file(dir, "a"), file(dir, "b")), quick)
	one.tell(t, 7)
	all(t, dir, "a", 7)
	all(t, dir, "b", 7)
	left := options(file(dir, "a"))
	left.Left = []string{"b"}
	one.Set(left)
	one.tell(t, 7)
	all(t, dir, "a", 14)
	two := start(t, root, "two", left, quick)
	one.stop()
	two.tell(t, 7)
	all(t, dir, "a", 21)
	left.Left, left.LeftOthers = nil, true
	two.Set(left)
	two.tell(t, 1)
	all(t, dir, "a", 22)
	two.Set(options(file(dir, "a"), file(dir, "b")))
	all(t, dir, "b", 22)
	two.tell(t, 1)
	all(t, dir, "a", 23)
	all(t, dir, "b", 23)
}

// Mistakes: rights that refuse the place of one sink, or to remove one, and stop all others;
// a sink that gets the same events for ever as its place cannot be written.
func TestRightsAreOfOneSink(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	d := start(t, root, "one", options(file(dir, "a"), file(dir, "b"), file(dir, "c")), quick)
	d.tell(t, 3)
	for _, name := range []string{"a", "b", "c"} {
		all(t, dir, name, 3)
	}
	d.Set(nil)
	cursors := event.Root + "/cursors"
	session := d.store.Session()
	zktest.Eventually(t, func() bool { // the stop has saved all places
		for _, name := range []string{"a", "b", "c"} {
			var at recipe.LogPosition
			data, _, err := session.Get(t.Context(), cursors+"/"+name)
			if err != nil || json.Unmarshal(data, &at) != nil || at.Number < 3 {
				return false
			}
		}
		return true
	}, "places at the third event")
	allow := zktest.Protect(t, zktest.Shared(t).Addr(), root, cursors) // a stays, c is refused, no place for d
	zktest.Protect(t, zktest.Shared(t).Addr(), root, cursors+"/b")()   // and b is free
	d.Set(options(file(dir, "b"), file(dir, "c"), file(dir, "d")))
	d.tell(t, 4)
	all(t, dir, "b", 7)
	if n := len(written(t, filepath.Join(dir, "c"))) + len(written(t, filepath.Join(dir, "d"))); n != 3 {
		t.Errorf("%d events went to sinks whose places cannot be written, want the 3 before", n)
	}
	allow()
	d.Set(options(file(dir, "b"), file(dir, "c")))
	all(t, dir, "c", 7)
	zktest.Eventually(t, func() bool {
		names, err := recipe.NewLog(event.Root, "").Consumers(t.Context(), d.store.Session())
		return err == nil && len(names) == 2
	}, "places of sinks that are no more are removed")
}
