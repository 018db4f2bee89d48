package validate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

var (
	errBroken = errors.New("it does not boot")
	moment    = time.Unix(1_800_000_000, 0)
	serving   = &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "debian", Build: "0000000001", Provider: "cloud", ID: "0000000000"}}
)

// What follows from how a node ended. Mistakes: an upload that is rejected where the
// provider is at fault, or the first build after one failure; one that fails for ever and
// never is; a refusal that counts as a failure; an answer for late checks where none began.
func TestWhatFollowsFromANode(t *testing.T) {
	t.Parallel()
	good := serving
	failedOnce := zkmodel.ValidationResult{Tries: 1, Failure: "no disk", Pool: "main"}
	late := ended{why: fmt.Errorf("timeout of 9s is over: %w", errBroken), timedOut: true}
	checkFails := ended{why: fmt.Errorf("%w: command python3: it ends with 127", checks.ErrFailed)}
	failedCheck := zkmodel.ValidationResult{Tries: 1, Failure: "no python", Pool: "main", Checked: true}
	refused := ended{why: blame(fmt.Errorf("no host: %w", providers.ErrQuota))}
	for name, c := range map[string]struct {
		was             zkmodel.ValidationResult
		serve           bool
		control, serves *zkmodel.Upload
		how             ended
		state           zkmodel.ValidationState
		tries, faults   int
		control2        bool // the control is due
		again           bool // there is a pause
		why             string
	}{
		"it passes":                                   {state: zkmodel.ValidationPassed},
		"it passes after a provider's fault":          {was: zkmodel.ValidationResult{Faults: 3, FirstUntried: 7}, state: zkmodel.ValidationPassed, faults: 3},
		"it fails, and another serves":                {serves: good, how: ended{why: errBroken}, state: zkmodel.ValidationControl, tries: 1, control2: true, why: "build 0000000001"},
		"it fails once, and nothing serves":           {how: ended{why: errBroken}, state: zkmodel.ValidationWaiting, tries: 1, control2: true, again: true, why: "node 1 of 3"},
		"it fails for the third time":                 {was: zkmodel.ValidationResult{Tries: 2}, how: ended{why: errBroken}, state: zkmodel.ValidationFailed, tries: 3, control2: true, why: "3 nodes failed"},
		"the control does well":                       {was: failedOnce, control: good, serves: good, state: zkmodel.ValidationFailed, tries: 1, control2: true, why: "no disk"},
		"the control fails":                           {was: failedOnce, control: good, serves: good, how: ended{why: errBroken}, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "cloud is at fault"},
		"both fail a check":                           {was: failedCheck, control: good, serves: good, how: checkFails, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "neither build 0000000002 (no python) nor build 0000000001, which serves, (check failed: command python3: it ends with 127) passes the checks"},
		"both check too long":                         {was: failedCheck, control: good, serves: good, how: late, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "image-promote lets this one serve"},
		"a check fails, the control does not boot":    {was: failedCheck, control: good, serves: good, how: ended{why: errBroken}, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "cloud is at fault"},
		"it does not boot, a check of the control":    {was: failedOnce, control: good, serves: good, how: checkFails, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "cloud is at fault"},
		"the control is refused":                      {was: failedOnce, control: good, serves: good, how: refused, state: zkmodel.ValidationUntried, faults: 1, again: true, why: "no host"},
		"it is refused":                               {was: zkmodel.ValidationResult{Tries: 2}, how: refused, state: zkmodel.ValidationUntried, tries: 2, faults: 1, again: true, why: "no host"},
		"its checks are late":                         {serves: good, how: late, state: zkmodel.ValidationControl, tries: 1, control2: true, why: "9s"},
		"its checks are late, and it serves so":       {serve: true, serves: good, how: late, state: zkmodel.ValidationPassed, why: "on-timeout is serve"},
		"its boot is late, and late ones serve":       {serve: true, serves: good, how: ended{why: late.why}, state: zkmodel.ValidationControl, tries: 1, control2: true},
		"its check fails in time, late ones serve":    {serve: true, serves: good, how: ended{why: errBroken}, state: zkmodel.ValidationControl, tries: 1, control2: true},
		"the control's checks are late, all the same": {was: failedOnce, control: good, serves: good, serve: true, how: late, state: zkmodel.ValidationUntried, faults: 1, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &zkmodel.Validation{Provider: "cloud", Build: "0000000002", Serve: c.serve}
			r := after(v, c.was, c.control, c.serves, c.how, moment)
			if r.State != c.state || r.Tries != c.tries || r.Faults != c.faults || !strings.Contains(r.Why, c.why) || (r.Failure != "") != c.control2 && !r.Final() {
				t.Errorf("%+v", r)
			}
			if (r.Again != 0) != c.again || c.again && !r.Again.Time().After(moment) || r.Final() && r.FirstUntried != 0 {
				t.Errorf("%+v", r)
			}
			if (r.State == zkmodel.ValidationUntried) != (r.FirstUntried != 0) {
				t.Errorf("untried since %v in state %s", r.FirstUntried, r.State)
			}
		})
	}
}

// Since when it is untried stays until the trial ends. Mistakes: an upload that is refused
// again and again is never told of; nor one that fails in turn with its control.
func TestSinceWhenItIsUntried(t *testing.T) {
	t.Parallel()
	v, n := &zkmodel.Validation{Provider: "cloud"}, &zkmodel.Node{ID: "1", Pool: "main"}
	r := waitsFor(zkmodel.ValidationResult{}, "it is full", moment)
	for range 3 {
		r = begun(r, n, nil, moment.Add(time.Minute))
		r = after(v, r, nil, nil, ended{why: untried(errBroken)}, moment.Add(time.Hour))
	}
	if !r.FirstUntried.Time().Equal(moment) || r.Faults != 3 {
		t.Errorf("%+v", r)
	}
	r = after(v, begun(r, n, nil, moment), nil, nil, ended{why: errBroken}, moment)
	if r = waitsFor(r, "it is full", moment.Add(2*time.Hour)); !r.FirstUntried.Time().Equal(moment) {
		t.Errorf("%+v", r)
	}
	now, untried := moment, moment.Add(time.Minute)
	r = zkmodel.ValidationResult{}
	for now.Before(moment.Add(3 * time.Hour)) {
		for _, control := range []*zkmodel.Upload{nil, serving} {
			r = begun(r, n, control, now)
			v.Result = &r
			if since := v.Untried(); now.After(untried) && !since.Equal(untried) {
				t.Fatalf("after %s untried since %s: %+v", now.Sub(moment), since, r)
			}
			r = after(v, r, control, serving, ended{why: errBroken}, untried)
		}
		now = now.Add(10 * time.Minute)
	}
}

// A control says something of a failure only soon after it. Mistake: an upload that failed
// in an outage is rejected as a control does well after it.
func TestControlThatComesLate(t *testing.T) {
	t.Parallel()
	v := &zkmodel.Validation{Provider: "cloud"}
	r := after(v, zkmodel.ValidationResult{}, nil, serving, ended{why: errBroken}, moment)
	if tooLate(r, moment.Add(controlTime)) || !tooLate(r, moment.Add(controlTime+time.Second)) {
		t.Errorf("failed at %v: %+v", moment, r)
	}
	if r = forget(r); r.Failure != "" || r.Failed != 0 || r.Tries != 0 {
		t.Errorf("%+v", r)
	}
}

// Mistake: the launcher looks again at once, for as long as it deletes a node.
func TestDeletionOfATriedNodeIsWaitedFor(t *testing.T) {
	t.Parallel()
	own := inflight.NewRecords(nil, nil, func() {})
	n := &zkmodel.Node{ID: "0000000007", Provider: "cloud", Validates: "x", StateTime: zkmodel.EpochOf(moment.Add(-time.Minute))}
	own.Note(n)
	c := New(Deps{Own: own}).choose(&schedule.Snapshot{Nodes: []*zkmodel.Node{n}}, nil, []*zkmodel.Validation{{Provider: "cloud", Image: "debian"}}, moment)
	if !c.again.After(moment) {
		t.Errorf("looks again at %v, and it is %v", c.again, moment)
	}
}

// Mistake: a cloud's fault that is taken for the upload's, or the reverse.
func TestBlame(t *testing.T) {
	t.Parallel()
	for err, theirs := range map[error]bool{
		providers.ErrQuota: true, providers.ErrTransient: true, providers.ErrUnanswered: true, providers.ErrUnusable: true,
		providers.ErrNodeFailed: false, providers.ErrNotFound: false, providers.ErrInvalid: false, errBroken: false,
	} {
		if got := errors.Is(blame(fmt.Errorf("boot: %w", err)), errUntried); got != theirs {
			t.Errorf("%v: untried %t", err, got)
		}
	}
	if blame(nil) != nil {
		t.Error("nothing is somewhat")
	}
}
