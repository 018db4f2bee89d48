// Package reap decides what becomes of nodes whose lock is free: which are to be deleted,
// given back or gone on with, and when to look again. It has no side effects, no clock
// and no I/O.
package reap
