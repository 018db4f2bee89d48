// Package fleet is the configuration of all hosts in the tree: numbered versions that are
// signed by who pushes them, the switch to the next, what each daemon runs, and what it keeps
// for a start without ZooKeeper's. Nothing of it is there where nobody pushes.
package fleet
