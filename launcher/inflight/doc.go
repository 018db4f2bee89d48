// Package inflight is what one session of a launcher has in hand: which jobs run, whose
// quota lock is ours, and which requests and nodes we change at the moment.
package inflight
