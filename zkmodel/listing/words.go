package listing

import (
	"fmt"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// Words joins what is not empty.
func Words(between string, parts ...string) string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return strings.Join(some, between)
}

// Count is a number of things: "1 node", "2 nodes".
func Count(n int, what string) string {
	if n == 1 || strings.HasSuffix(what, "s") {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Span is a length of time in the two units that matter.
func Span(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 10*60:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 60*60:
		return fmt.Sprintf("%dm", s/60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh %dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
}

// Changed is when a record's state changed, or it was written last.
func Changed(state zkmodel.Epoch, written time.Time) time.Time {
	if state == 0 {
		return written
	}
	return state.Time()
}

// Why is a record's reason, or why it cannot be read.
func Why(reason string, unreadable error) string {
	if unreadable != nil {
		return unreadable.Error()
	}
	return reason
}

// Failures tells of failures that repeat, and of when what failed is tried again.
func Failures(n int, again zkmodel.Epoch, now time.Time) string {
	return Words(", ", inARow(n), nextTry(again, now))
}

// inARow tells of failures that repeat.
func inARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf("%d in a row", failures)
}

// nextTry says when something that failed is tried again; "" when nobody said, or
// it only waits to be done.
func nextTry(at zkmodel.Epoch, now time.Time) string {
	if wait := at.Time().Sub(now); at != 0 && wait > 0 {
		return "next try in " + Span(wait)
	}
	return ""
}

// Undeleted says why the last deletion of something in a cloud failed; "" for none.
func Undeleted(failed string) string {
	if failed == "" {
		return ""
	}
	return "not deleted: " + failed
}
