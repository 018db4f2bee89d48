package kubernetes

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"poolkeeper/providers"
)

// failure says what an error of the API server means for a daemon, with the server's words.
func failure(err error) error {
	if meaning := meaningOf(err); meaning != nil {
		return &refusal{meaning, err}
	}
	return err
}

// refusal is an error of the API server, or of the way there, with what it means.
type refusal struct{ meaning, err error }

// Error tells both; the server's words in one line.
func (r *refusal) Error() string { return r.meaning.Error() + ": " + providers.Words(r.err.Error()) }

// Unwrap gives both.
func (r *refusal) Unwrap() []error { return []error{r.meaning, r.err} }

func meaningOf(err error) error {
	if _, known := errors.AsType[*refusal](err); known || err == nil || errors.Is(err, providers.ErrUnusable) || errors.Is(err, providers.ErrTransient) {
		return nil
	}
	status, ok := errors.AsType[*statusError](err)
	if !ok { // no answer
		return providers.ErrTransient
	}
	switch code := status.Code; {
	case isQuota(err) && isBeyond(err.Error()):
		return providers.ErrInvalid
	case isQuota(err):
		return providers.ErrQuota
	case status.limited:
		return providers.ErrTransient
	case isEnding(err):
		return providers.ErrNotFound
	case isEarly(err):
		return providers.ErrTransient
	case code == http.StatusForbidden && isPolicy(status):
		return providers.ErrInvalid
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return providers.ErrUnusable
	case code == http.StatusNotFound && status.Foreign:
		return providers.ErrTransient // what is before the API server has no such page
	case code == http.StatusNotFound:
		return providers.ErrNotFound
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity, code == http.StatusMethodNotAllowed,
		code == http.StatusRequestEntityTooLarge, code == http.StatusUnsupportedMediaType:
		return providers.ErrInvalid
	}
	return providers.ErrTransient
}

// isGone tells that the API server itself says that something is not there.
func isGone(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && !status.Foreign && is(err, reasonNotFound)
}

// isQuota tells a refusal because of a ResourceQuota: later may work.
func isQuota(err error) bool {
	return is(err, reasonForbidden) && strings.Contains(err.Error(), "exceeded quota")
}

// isBeyond tells that a quota could never give what was requested, even with nothing used: waiting
// for room would not help. What cannot be read is taken for a quota that is full now.
func isBeyond(text string) bool {
	_, text, _ = strings.Cut(text, ", requested: ")
	requested, text, found := strings.Cut(text, ", used: ")
	_, limited, more := strings.Cut(text, ", limited: ")
	if !found || !more {
		return false
	}
	most := map[string]string{}
	for one := range strings.SplitSeq(limited, ",") {
		name, amount, _ := strings.Cut(strings.TrimSpace(one), "=")
		most[name] = amount
	}
	for one := range strings.SplitSeq(requested, ",") {
		name, amount, _ := strings.Cut(strings.TrimSpace(one), "=")
		wants, has := quantity(amount), quantity(most[name])
		if wants != nil && has != nil && wants.Cmp(has) > 0 {
			return true
		}
	}
	return false
}

// isPolicy tells a refusal of what was asked for, as by a LimitRange, PodSecurity or a webhook,
// from a missing right: asking again would not help. A proxy's refusal has no reason.
func isPolicy(status *statusError) bool {
	text := status.Message
	right := strings.Contains(text, "forbidden: User \"") && strings.Contains(text, "\" cannot ") || strings.Contains(text, "is attempting to grant")
	if strings.Contains(text, "admission webhook ") && strings.Contains(text, "denied the request") {
		return true
	}
	return status.Reason == reasonForbidden && !right && strings.Contains(text, "forbidden: ")
}

// isEnding tells that a namespace is being deleted, in which something was to be made.
func isEnding(err error) bool {
	return is(err, reasonForbidden) && strings.Contains(err.Error(), "because it is being terminated")
}

// isEarly tells that a namespace is so new that its default service account is not there yet,
// without which no pod is made; or that the controller of a new quota has not counted yet.
func isEarly(err error) bool {
	if !is(err, reasonForbidden) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "error looking up service account") || strings.Contains(text, "status unknown for quota")
}

// again is the error of something that is read to go on, and has gone meanwhile: a retry makes it.
func again(err error) error {
	if errors.Is(err, providers.ErrNotFound) {
		return fmt.Errorf("%w: %s", providers.ErrTransient, err.Error())
	}
	return err
}

// passing is nil for an error that may be over at the next look.
func passing(err error) error {
	if errors.Is(err, providers.ErrTransient) {
		return nil
	}
	return err
}

// unitOf has the value of the suffixes of quantities.
var unitOf = map[string]string{
	"n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15", "E": "1e18",
	"Ki": "1024", "Mi": "1048576", "Gi": "1073741824", "Ti": "1099511627776", "Pi": "1125899906842624", "Ei": "1152921504606846976",
}

// quantity parses an amount as Kubernetes writes it, such as 500m or 4Gi; nil is none.
func quantity(text string) *big.Rat {
	if len(text) > 100 { // no amount is that long, and exponents may be huge
		return nil
	}
	number := strings.TrimRight(text, "numkMGTPEi")
	unit, known := unitOf[text[len(number):]]
	if _, exponent, _ := strings.Cut(strings.ToLower(number), "e"); !known || strings.Contains(number, "/") || len(exponent) > 3 {
		return nil
	}
	n, ok := new(big.Rat).SetString(number)
	factor, _ := new(big.Rat).SetString(unit) // of the table
	if !ok {
		return nil
	}
	return n.Mul(n, factor)
}
