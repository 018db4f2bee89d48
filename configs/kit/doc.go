// Package kit holds the few helpers that packages of every floor need: a sleep that
// ends with its context, how long to leave alone what failed, random ids, and files that
// are replaced, and when certificates end.
package kit
