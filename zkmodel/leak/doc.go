// Package leak finds what is in a cloud and has no record: in an order that takes
// nothing for leaked whose record is only seen late, and in two searches.
package leak
