// Package history keeps what became of builds, uploads, requests and nodes after their
// records are gone: in a file of one daemon, which sees them in its mirror of the tree.
package history
