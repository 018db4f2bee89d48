// Package canary has a new build of an image serve a share of new nodes first: it counts
// what becomes of them, and says when the build serves all, or none.
package canary
