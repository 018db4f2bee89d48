// Package recipe holds what Poolkeeper needs from ZooKeeper: sessions, locks and
// fenced writes, and a cache of the tree.
package recipe
