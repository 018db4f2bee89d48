// Package replay runs simulations so that one can be repeated: compiled for WASI under wazero,
// with all that a program takes from outside fixed. It finds the failures of many seeds, and
// reduces one to the faults that it needs.
package replay
