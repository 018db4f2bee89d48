package request

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"poolkeeper/zkmodel"
)

// is checks who is an orphan.
func is(t *testing.T, o *Orphans, want ...string) {
	t.Helper()
	all := o.All()
	for _, id := range want {
		if !all[id] {
			t.Errorf("%s is none of %v", id, all)
		}
	}
	if len(all) != len(want) {
		t.Errorf("orphans are %v, want %v", all, want)
	}
}

// A search for orphans keeps the mark of one that is in our hands still, which it does
// not ask about: nobody would take that up until the next search, a minute later.
func TestMarkOutlivesASearch(t *testing.T) {
	t.Parallel()
	var o Orphans
	o.Mark("in-hand")
	o.Mark("gone")
	o.Find(nil, map[string]bool{"in-hand": true}, nil, nil)
	is(t, &o, "in-hand")
	o.Find(nil, nil, nil, nil)
	is(t, &o)
}

// Only what is pending, readable and unlocked is an orphan, and no business of ours or
// of others: anything more would be taken from a launcher that lives.
func TestOrphansAreFound(t *testing.T) {
	t.Parallel()
	var o Orphans
	requests := []*zkmodel.Request{
		{ID: "orphan", State: zkmodel.RequestPending},
		{ID: "locked", State: zkmodel.RequestPending},
		{ID: "unknown", State: zkmodel.RequestPending},
		{ID: "marked-unknown", State: zkmodel.RequestPending},
		{ID: "ours", State: zkmodel.RequestPending},
		{ID: "theirs", State: zkmodel.RequestPending},
		{ID: "broken", State: zkmodel.RequestPending, Broken: errors.New("no JSON")},
		{ID: "waits", State: zkmodel.RequestRequested},
		{ID: "marked-waits", State: zkmodel.RequestRequested},
		{ID: "done", State: zkmodel.RequestFulfilled},
	}
	for _, id := range []string{"marked-unknown", "marked-waits", "locked", "done"} {
		o.Mark(id)
	}
	o.Find(requests, map[string]bool{"ours": true}, map[string]bool{"theirs": true}, func(r *zkmodel.Request) (bool, error) {
		if slices.Contains([]string{"ours", "theirs", "broken", "waits", "done"}, r.ID) {
			return false, fmt.Errorf("%s is asked about", r.ID)
		}
		if r.ID == "unknown" || r.ID == "marked-unknown" {
			return false, errors.New("no connection")
		}
		return r.ID == "locked", nil
	})
	is(t, &o, "orphan", "marked-unknown", "marked-waits")
	var none Orphans
	none.Find(requests[:1], nil, nil, func(*zkmodel.Request) (bool, error) { return false, nil })
	is(t, &none, "orphan")
	o.Forget("orphan")
	is(t, &o, "marked-unknown", "marked-waits")
}

// Mistake: a tree full of requests is asked about all at once, and nothing else comes through meanwhile.
func TestNotAllAreAskedAboutAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o Orphans
		var requests []*zkmodel.Request
		for i := range asked + 7 {
			requests = append(requests, &zkmodel.Request{ID: fmt.Sprint(i), State: zkmodel.RequestPending})
		}
		var begun atomic.Int64
		answer := make(chan struct{})
		found := make(chan struct{})
		go func() {
			defer close(found)
			o.Find(requests, nil, nil, func(*zkmodel.Request) (bool, error) { begun.Add(1); <-answer; return false, nil })
		}()
		synctest.Wait()
		if n := begun.Load(); n != asked {
			t.Errorf("%d are asked about at once, want %d", n, asked)
		}
		close(answer)
		<-found
		if n := len(o.All()); n != len(requests) {
			t.Errorf("%d of %d are found", n, len(requests))
		}
	})
}
