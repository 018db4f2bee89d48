// Package model says what may happen with locks, claims and quotas, twice over. Models in
// Promela are checked exhaustively by spin: every order of steps and faults of three processes. The same
// states as porcupine models judge histories that were recorded of the real code. Both are
// given the same small histories.
package model
