// Package reaper does what is due with nodes whose lock is free: it deletes them, in the
// cloud and then in the tree, frees them, or has their launch gone on with. What is due is
// decided in the package reap.
package reaper
