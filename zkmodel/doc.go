// Package zkmodel is the ZooKeeper tree as Go types: images, builds, uploads,
// nodes, node requests and components, with the paths and the JSON that
// Nodepool and Zuul speak.
//
// There are two ways in. A Store reads and writes records within one session;
// every change is made under a lock and carries that lock's fence, so that a
// process that was paused and woke up late writes nothing. A Mirror follows the
// tree in memory, across sessions, for those who decide: it gives consistent,
// typed snapshots, tells what changed, and costs ZooKeeper nothing at rest.
//
// Records are read generously and written exactly. Unknown keys, unknown states
// and values of unexpected types survive a rewrite; data that is no record at
// all makes a record that is Broken, never an error for the whole listing.
//
// Package recipe, below, holds what is not Poolkeeper's: sessions, locks,
// caches, elections. It alone speaks to the ZooKeeper client library.
package zkmodel
