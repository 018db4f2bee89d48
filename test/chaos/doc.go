// Package chaos lets builders, launchers, requestors and ZooKeeper servers live in a
// world in which everything goes wrong that can, and checks all the time what must always
// hold, and at the end that all comes to rest and nothing is left over.
//
// `make chaos` runs ten minutes of it, `.ci/run` ninety seconds.
package chaos
