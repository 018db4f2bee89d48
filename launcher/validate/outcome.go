package validate

import (
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/launcher/checks"
	"poolkeeper/zkmodel"
)

// tries is how many nodes of an upload must fail where no other upload serves, with whose
// node it could be told whether the provider is at fault.
const tries = 3

// controlTime is how long after a failure a control may begin: it proves something only in
// the same state of the provider.
const controlTime = 5 * time.Minute

// pauses are those after a try that told nothing, or that is to be repeated.
var pauses = kit.Backoff{First: 2 * time.Second, Longest: 10 * time.Minute}

// errUntried marks what is no fault of the upload: nothing is known of it then.
var errUntried = errors.New("not tried")

// untried marks an error as no fault of the upload.
func untried(err error) error {
	if err == nil {
		return nil
	}
	return &notTried{err}
}

type notTried struct{ why error }

func (e *notTried) Error() string        { return e.why.Error() }
func (e *notTried) Unwrap() error        { return e.why }
func (e *notTried) Is(target error) bool { return target == errUntried }

// ended is how a node did.
type ended struct {
	why      error // nil when it passed; errUntried when nothing is known
	timedOut bool  // its checks had begun, and took too long
}

// check reports whether it was a check that failed: the node had booted.
func (e ended) check() bool { return e.timedOut || errors.Is(e.why, checks.ErrFailed) }

// begun is the result while a node is made; control says that it is one of what serves.
func begun(was zkmodel.ValidationResult, n *zkmodel.Node, control *zkmodel.Upload, now time.Time) zkmodel.ValidationResult {
	r := was
	r.State, r.Why, r.Again = zkmodel.ValidationBooting, "", 0
	if control != nil {
		r.State = zkmodel.ValidationControl
		r.Why = fmt.Sprintf("its node failed: %s; a node of build %s, which serves, is tried in the same pool", was.Failure, control.Build)
	}
	r.Node, r.Pool, r.Began = n.ID, n.Pool, zkmodel.EpochOf(now)
	return r
}

// tooLate reports whether a control that begins now would say nothing of the last failure.
func tooLate(was zkmodel.ValidationResult, now time.Time) bool {
	return now.Sub(was.Failed.Time()) > controlTime
}

// forget is a result without its failures: the upload is tried anew.
func forget(was zkmodel.ValidationResult) zkmodel.ValidationResult {
	was.Failure, was.Failed, was.Tries, was.TimedOut, was.Checked = "", 0, 0, false, false
	return was
}

// checked is the result while the checks of a node run.
func checked(was zkmodel.ValidationResult) zkmodel.ValidationResult {
	r := was
	r.State = zkmodel.ValidationChecking
	return r
}

// waitsFor is the result while nothing can be tried.
func waitsFor(was zkmodel.ValidationResult, why string, now time.Time) zkmodel.ValidationResult {
	r := was
	r.State, r.Why = zkmodel.ValidationUntried, why
	if was.Failure != "" {
		r.Why = fmt.Sprintf("%s (its node failed: %s)", why, was.Failure)
	}
	if r.FirstUntried == 0 {
		r.FirstUntried = zkmodel.EpochOf(now)
	}
	return r
}

// after is the result of a trial after one of its nodes has ended, or one of the control,
// which is nil for a node of the upload itself. serves is what serves meanwhile, so that a
// control is possible; nil without.
func after(v *zkmodel.Validation, was zkmodel.ValidationResult, control, serves *zkmodel.Upload, how ended, now time.Time) zkmodel.ValidationResult {
	r := was
	again := func() { r.Faults++; r.Again = zkmodel.EpochOf(now.Add(pauses.After(r.Faults))) }
	switch {
	case errors.Is(how.why, errUntried):
		r = waitsFor(was, how.why.Error(), now)
		if control != nil {
			r = forget(r) // the trouble may be over before the next control
		}
		again()
	case control != nil && how.why == nil:
		r = final(r, zkmodel.ValidationFailed, fmt.Sprintf("%s; a node of build %s does well in the same pool", was.Failure, control.Build))
	case control != nil:
		r = waitsFor(forget(r), bothFailed(v, was, control, how), now)
		again()
	case how.why == nil:
		r = final(r, zkmodel.ValidationPassed, "")
	case how.timedOut && v.Serve:
		r.TimedOut = true
		r = final(r, zkmodel.ValidationPassed, "on-timeout is serve: "+how.why.Error())
	default:
		r.Tries, r.TimedOut, r.Checked = was.Tries+1, how.timedOut, how.check()
		r.Failure, r.Failed = how.why.Error(), zkmodel.EpochOf(now)
		switch {
		case serves != nil:
			r.State = zkmodel.ValidationControl
			r.Why = fmt.Sprintf("its node failed: %s; a node of build %s, which serves, is tried next", r.Failure, serves.Build)
		case r.Tries >= tries:
			r = final(r, zkmodel.ValidationFailed, fmt.Sprintf("%d nodes failed, the last: %s", r.Tries, r.Failure))
		default:
			r.State, r.Again = zkmodel.ValidationWaiting, zkmodel.EpochOf(now.Add(pauses.After(r.Tries)))
			r.Why = fmt.Sprintf("node %d of %d failed, and nothing serves that it could be compared with: %s", r.Tries, tries, r.Failure)
		}
	}
	return r
}

// bothFailed says why nothing is known of an upload whose node failed, and its control, too.
func bothFailed(v *zkmodel.Validation, was zkmodel.ValidationResult, control *zkmodel.Upload, how ended) string {
	if was.Checked && how.check() {
		return fmt.Sprintf("neither build %s (%s) nor build %s, which serves, (%s) passes the checks, and both boot in provider %s: "+
			"mend the check or the account of image %s, which counts from the next upload on, or the key, which counts at once; image-promote lets this one serve",
			v.Build, was.Failure, control.Build, how.why, v.Provider, v.Image)
	}
	return fmt.Sprintf("provider %s is at fault: its node failed (%s), and so did one of build %s, which serves (%s)",
		v.Provider, was.Failure, control.Build, how.why)
}

// final is the result of a trial that is over.
func final(r zkmodel.ValidationResult, state zkmodel.ValidationState, why string) zkmodel.ValidationResult {
	r.State, r.Why, r.Again, r.FirstUntried = state, why, 0, 0
	return r
}
