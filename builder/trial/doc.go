// Package trial holds uploads that are tried before they serve: it stands in line for the
// lock of each, and does what is decided once the trial has ended.
package trial
