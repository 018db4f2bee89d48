package dispatch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/recipe"
)

// quick makes tries come soon after each other.
func quick(d *dispatch.Deps) {
	d.Retries = kit.Backoff{First: time.Millisecond, Longest: 20 * time.Millisecond}
}

func options(sinks ...dispatch.Sink) *dispatch.Options {
	for i := range sinks {
		sinks[i].Timeout = 20 * time.Second
	}
	return &dispatch.Options{Keep: 5000, Age: time.Hour, Sinks: sinks}
}

// written are the events of a file sink.
func written(t *testing.T, path string) []event.Event {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var list []event.Event
	for line := range bytes.Lines(data) {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

// receiver is a webhook's other end.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(e event.Event) int // nil accepts
	got    []event.Event
	bad    []string
}

func receive(t *testing.T, key string) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		var e event.Event
		if err := json.Unmarshal(body, &e); err != nil || q.Header.Get(dispatch.SignatureHeader) != dispatch.Sign(key, body) ||
			q.Header.Get(dispatch.DeliveryHeader) != e.ID || q.Header.Get("Content-Type") != "application/cloudevents+json" {
			r.bad = append(r.bad, fmt.Sprint(q.Header, string(body), err))
		}
		if r.answer != nil {
			if code := r.answer(e); code != http.StatusOK {
				w.WriteHeader(code)
				return
			}
		}
		r.got = append(r.got, e)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(event.Event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) all() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event.Event{}, r.got...)
}

// Mistakes: a dead sink that holds up others; events that are lost, doubled without need or
// out of order; a body that is not signed; one that comes to a sink which did not ask for it.
func TestSinksGetEventsInOrder(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	hook, gone := receive(t, "the key of the hook"), receive(t, "")
	gone.Close() // nobody listens there
	d := start(t, root, "builder", nil, quick)
	d.Set(options(
		dispatch.Sink{Name: "dead", Webhook: gone.URL},
		dispatch.Sink{Name: "file", File: filepath.Join(dir, "events")},
		dispatch.Sink{Name: "hook", Webhook: hook.URL, Key: "the key of the hook", Match: []string{"provider/p1", "build.*"}},
		dispatch.Sink{Name: "program", Command: script(t, dir, `cat >>"`+dir+`/program"; echo >>"`+dir+`/program"`)},
	))
	d.tell(t, 120)
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, "events"))) == 120 }, "the file has all")
	zktest.Eventually(t, func() bool { return len(hook.all()) == 40 }, "the webhook has its third")
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, "program"))) == 120 }, "the program was called for all")
	for i, e := range written(t, filepath.Join(dir, "events")) {
		if e.Data["n"] != float64(i+1) || !strings.HasSuffix(e.ID, fmt.Sprintf("-%d", i+1)) {
			t.Fatalf("event %d is %+v", i+1, e)
		}
	}
	for i, e := range hook.all() {
		if e.Data["n"] != float64(3*i+2) {
			t.Fatalf("event %d of the webhook is %+v", i+1, e)
		}
	}
	if len(hook.bad) > 0 {
		t.Errorf("wrong requests: %q", hook.bad[0])
	}
	if letters, err := dispatch.Letters(t.Context(), d.store.Session(), ""); err != nil || len(letters) != 0 {
		t.Errorf("a sink that does not answer has refused %v: %v", letters, err)
	}
}

// script writes a program for a sink.
func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "program.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Mistakes: an event that is refused and holds up those behind it, or is lost; one that is
// given up although its sink is only away for a while; a replay that goes to all sinks, or twice.
func TestRefusedEventsAreDeadLetters(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	hook := receive(t, "")
	away, times := 5, map[string]int{}
	hook.answers(func(e event.Event) int {
		times[e.ID]++
		switch n := e.Data["n"].(float64); {
		case n == 2:
			return http.StatusUnprocessableEntity
		case n == 3 && times[e.ID] <= away:
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	d := start(t, root, "launcher", nil, quick)
	d.Set(options(dispatch.Sink{Name: "hook", Webhook: hook.URL}, dispatch.Sink{Name: "file", File: filepath.Join(dir, "events")}))
	d.tell(t, 4)
	zktest.Eventually(t, func() bool { return len(hook.all()) == 3 }, "all but the refused one come")
	if places, err := dispatch.Places(t.Context(), d.store.Session()); err != nil || len(places) != 2 || places[1].Sink != "hook" || places[1].Letters != 1 || places[0].Letters != 0 {
		t.Errorf("the places of sinks: %+v, %v", places, err)
	}
	letters, err := dispatch.Letters(t.Context(), d.store.Session(), "hook")
	if err != nil || len(letters) != 1 || letters[0].Event.Data["n"] != float64(2) || !strings.Contains(letters[0].Reason, "422") {
		t.Fatalf("dead letters %+v: %v", letters, err)
	}
	hook.answers(nil)
	for range 2 {
		if err := dispatch.Replay(t.Context(), d.store.Session(), recipe.NewLog(event.Root, ""), letters[0]); err != nil {
			t.Fatal(err)
		}
	}
	zktest.Eventually(t, func() bool { return len(hook.all()) == 4 }, "the dead letter comes")
	d.tell(t, 1)
	zktest.Eventually(t, func() bool { return len(hook.all()) == 5 }, "the next comes")
	got := hook.all()
	if e := got[3]; e.Data["n"] != float64(2) || e.ReplayOf != letters[0].Event.ID || e.ID == e.ReplayOf {
		t.Errorf("replayed %+v", e)
	}
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, "events"))) == 5 }, "the other sink gets no replay")
	if letters, err = dispatch.Letters(t.Context(), d.store.Session(), ""); err != nil || len(letters) != 0 {
		t.Errorf("dead letters are left: %v %v", letters, err)
	}
}

// Mistakes: events that are lost, or that come again all of them, when the dispatcher dies
// or its session is lost; a sink that is added later and gets what is old.
func TestEventsOutliveTheirDispatcher(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	path := filepath.Join(dir, "events")
	sinks := options(dispatch.Sink{Name: "file", File: path})
	writer := start(t, root, "writer", nil)
	writer.client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/test"))
	writer.tell(t, 30) // before anybody dispatches
	for i := range 4 {
		d := start(t, root, fmt.Sprintf("daemon%d", i), sinks, quick)
		writer.tell(t, 100)
		zktest.Eventually(t, func() bool { return len(written(t, path)) >= 30+100*i+50 }, "dispatcher %d begins", i)
		d.client.Close() // as a kill: nothing more is written down
		writer.tell(t, 20)
		d.stop()
	}
	last := start(t, root, "last", options(dispatch.Sink{Name: "file", File: path}, dispatch.Sink{Name: "late", File: filepath.Join(dir, "late")}), quick)
	seen, high := map[string]int{}, 0
	zktest.Eventually(t, func() bool {
		clear(seen)
		for _, e := range written(t, path) {
			seen[e.ID]++
		}
		return len(seen) == 30+4*120
	}, "all have come")
	for _, e := range written(t, path) {
		_, digits, _ := strings.Cut(e.ID, "-")
		_, digits, _ = strings.Cut(digits, "-")
		var n int
		if _, err := fmt.Sscan(digits, &n); err != nil || n > high+1 {
			t.Fatalf("event %s comes after number %d: %v", e.ID, high, err)
		}
		high = max(high, n)
		if seen[e.ID] > 5 {
			t.Errorf("event %s came %d times", e.ID, seen[e.ID])
		}
	}
	writer.tell(t, 1)
	zktest.Eventually(t, func() bool { return len(written(t, filepath.Join(dir, "late"))) == 1 }, "the late sink gets the next")
	_ = last
}

// Mistakes: a sink that was away for long and is not told that it has missed something.
func TestSinksAreToldOfGaps(t *testing.T) {
	root, dir := zktest.Root(t), t.TempDir()
	hook := receive(t, "")
	hook.answers(func(event.Event) int { return http.StatusServiceUnavailable })
	d := start(t, root, "builder", nil, quick)
	o := options(dispatch.Sink{Name: "hook", Webhook: hook.URL, Match: []string{"build.*"}}, dispatch.Sink{Name: "file", File: filepath.Join(dir, "events")})
	o.Keep = 100
	d.Set(o)
	if err := d.store.Tell(t.Context(), event.BuildFailed, "build/a-1", nil); err != nil {
		t.Fatal(err)
	}
	d.tell(t, 400)
	zktest.Eventually(t, func() bool { // a sink that is slow may have a gap of its own
		list := written(t, filepath.Join(dir, "events"))
		return len(list) > 0 && list[len(list)-1].Data["n"] == float64(400) && d.left(t) == 100
	}, "the other sink goes on, and the log is trimmed")
	hook.answers(nil)
	zktest.Eventually(t, func() bool { return len(hook.all()) == 2 }, "the hook gets what it waited for, and the gap")
	gap := hook.all()[1]
	if gap.Type != event.Gap || gap.Data["first"] != float64(2) || gap.Data["last"] != float64(301) || gap.Data["number"] != float64(300) {
		t.Errorf("gap %+v", gap)
	}
}
