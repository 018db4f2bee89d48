// Package wire reads and writes the JSON of records as Nodepool and Zuul do, and keeps
// what it does not know (docs/wire.md §3).
package wire
