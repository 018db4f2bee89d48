package singleton

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// lockFolders is who holds the locks of requests.
type lockFolders struct {
	tree
	lines     map[string][]recipe.Contender // by request
	launchers map[int64]bool
	fail      error
	asked     int
}

func (f *lockFolders) Children(context.Context, string) ([]string, error) {
	var names []string
	for id := range f.lines {
		names = append(names, id)
	}
	return names, nil
}

func (f *lockFolders) Contenders(_ context.Context, lock string) ([]recipe.Contender, error) {
	f.asked++
	for id, line := range f.lines {
		if zkmodel.RequestLockPath(id) == lock {
			return line, f.fail
		}
	}
	return nil, f.fail
}

func (f *lockFolders) LauncherSessions(context.Context) (map[int64]bool, error) {
	return f.launchers, nil
}

// stuck is a request that has been in a state for two minutes.
func stuck(id string, state zkmodel.RequestState) *zkmodel.Request {
	return &zkmodel.Request{ID: id, State: state, StateTime: zkmodel.EpochOf(now.Add(-2 * time.Minute))}
}

// held is the line for a lock that a session holds and another waits for.
func held(name string, session int64) []recipe.Contender {
	return []recipe.Contender{{Name: name, Session: session, Identifier: "scheduler"}, {Name: "z", Session: 99}}
}

// Catches an alarm for what a launcher works on, what is held for a moment, what has
// just changed or is over; and silence about a request that nobody can serve.
func TestForeignLocks(t *testing.T) {
	for name, tc := range map[string]struct {
		request     *zkmodel.Request
		first, then []recipe.Contender
		want        bool
	}{
		"held by no launcher":      {stuck("r", zkmodel.RequestRequested), held("a", 7), held("a", 7), true},
		"the same, pending":        {stuck("r", zkmodel.RequestPending), held("a", 7), held("a", 7), true},
		"held by a launcher":       {stuck("r", zkmodel.RequestPending), held("a", 1), held("a", 1), false},
		"let go and taken again":   {stuck("r", zkmodel.RequestRequested), held("a", 7), held("b", 7), false},
		"not held":                 {stuck("r", zkmodel.RequestRequested), nil, nil, false},
		"held for the first time":  {stuck("r", zkmodel.RequestRequested), nil, held("a", 7), false},
		"fulfilled":                {stuck("r", zkmodel.RequestFulfilled), held("a", 7), held("a", 7), false},
		"its state has just begun": {&zkmodel.Request{ID: "r", State: zkmodel.RequestRequested, StateTime: zkmodel.EpochOf(now)}, held("a", 7), held("a", 7), false},
		"cannot be read":           {&zkmodel.Request{ID: "r", State: zkmodel.RequestRequested, Broken: errDown}, held("a", 7), held("a", 7), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &lockFolders{tree: tree{requests: []*zkmodel.Request{tc.request}}, launchers: map[int64]bool{1: true}}
			book, log := newBook()
			locks := NewForeignLocks(f, log, fixed)
			for _, line := range [][]recipe.Contender{tc.first, tc.then} {
				f.lines = map[string][]recipe.Contender{"r": line}
				locks.Pass(t.Context(), f)
			}
			got := book.String()
			if told := strings.Contains(got, "no launcher's"); told != tc.want {
				t.Errorf("told: %t, want %t", told, tc.want)
			}
			if tc.want && (!strings.Contains(got, "session=0x7") || !strings.Contains(got, "identifier=scheduler") || !strings.Contains(got, `["r"]`)) {
				t.Errorf("the log lacks who, or what: %s", got)
			}
		})
	}
}

// Catches a line of log a request, and a question to the server for each request that
// merely waits: there may be ten thousand.
func TestForeignLocksOfManyRequests(t *testing.T) {
	f := &lockFolders{lines: map[string][]recipe.Contender{}}
	for i := range 300 {
		id := fmt.Sprintf("%03d", i)
		f.requests = append(f.requests, stuck(id, zkmodel.RequestRequested))
		if i < 30 {
			f.lines[id] = held("a"+id, 7)
		}
	}
	book, log := newBook()
	locks := NewForeignLocks(f, log, fixed)
	locks.Pass(t.Context(), f)
	locks.Pass(t.Context(), f)
	if f.asked != 60 {
		t.Errorf("asked for the locks of %d requests in two passes, want 30 in each", f.asked)
	}
	got := book.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "count=30") || !strings.Contains(got, `"009"]`) {
		t.Error(got)
	}
}

// Catches a pass that failed and counts as the first of two: what it did not see may
// have changed since.
func TestForeignLocksAfterAFailedPass(t *testing.T) {
	f := &lockFolders{tree: tree{requests: []*zkmodel.Request{stuck("r", zkmodel.RequestPending)}}, lines: map[string][]recipe.Contender{"r": held("a", 7)}}
	book, log := newBook()
	locks := NewForeignLocks(f, log, fixed)
	for _, fail := range []error{nil, errDown, nil} {
		f.fail = fail
		locks.Pass(t.Context(), f)
	}
	if got := book.String(); got != "" {
		t.Error(got)
	}
}
