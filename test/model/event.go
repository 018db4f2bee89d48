package model

import (
	"cmp"
	"math"
	"slices"
)

// Event is one call that a client made, with its return.
type Event struct {
	Client int
	Op     string // acquire, release, lose, read, write; of claims see Claims
	Value  string // that was read or written; the request, or the count
	Call   int64  // nanoseconds
	Return int64  // 0 in the line that tells of the call alone
	Result string // ok, not (it has surely not happened), or unknown
}

// Never is when a call returns that never did.
const Never int64 = math.MaxInt64

// moment is a call or a return, in the order in which they were.
type moment struct {
	event    Event
	returned bool
	at       int64
}

// moments are the calls that may have happened and the returns that tell so, by time.
func moments(events []Event) []moment {
	var list []moment
	for _, e := range events {
		if e.Result == "not" {
			continue
		}
		if e.Op == "lose" { // the end of a session is told, and not called for
			if e.Result == "ok" {
				list = append(list, moment{e, true, e.Return})
			}
			continue
		}
		list = append(list, moment{e, false, e.Call})
		if e.Result == "ok" {
			list = append(list, moment{e, true, e.Return})
		}
	}
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return list
}

// Head is the part of a history in which no more than n calls and returns have happened: those
// that had not returned by then may have happened or not.
func Head(events []Event, n int) []Event {
	list := moments(events)
	if len(list) <= n {
		return events
	}
	until := list[n].at
	var head []Event
	for _, e := range events {
		if e.Call >= until || e.Op == "lose" && e.Return >= until {
			continue
		}
		if e.Return >= until && e.Result == "ok" {
			e.Return, e.Result = Never, "unknown"
		}
		head = append(head, e)
	}
	return head
}
