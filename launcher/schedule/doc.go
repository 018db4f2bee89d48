// Package schedule decides who gets what: what becomes of each node request, given all
// that the tree and the clouds show (Snapshot). It has no side effects, no clock and no
// I/O, so that a simulation, a test and the daemon get the same answers.
package schedule
