// Package launcher serves node requests: it takes a request from the tree,
// launches nodes from the newest images in a provider's pool, hands them over
// as Zuul expects, and deletes them when they have been used.
//
// The tree in ZooKeeper is all the state there is. A launcher looks at it as a
// whole (schedule.Snapshot), decides without side effects (schedule.Assign), and acts under the
// locks of the records; whatever it is in the middle of when it dies can be
// told from the records by the next one.
package launcher
