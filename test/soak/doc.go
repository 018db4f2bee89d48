// Package soak lets requestors of all moods loose on several launchers, whose
// processes and ZooKeeper servers are killed meanwhile, and checks all the time
// what must always hold, and at the end that nothing is left over.
//
// `make test` runs a minute of it, `make soak` ten.
package soak
