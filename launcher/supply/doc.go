// Package supply is what a launcher knows of each of its providers: whether it can be
// used, what its labels take, what it has room for, and what its refusals taught.
package supply
