// Package recipe is how Poolkeeper coordinates by ZooKeeper: sessions, locks,
// fenced writes, a cache of the tree, and what is built of them. It is the only
// package that speaks with ZooKeeper; zkmodel puts records on top of it.
//
// # Sessions
//
// A [Client] keeps one [Session] alive and begins a new one when it ends. Losing
// a session is a cancelled context: [Session.Context] ends when the server
// expires the session, when a server hands out another one after a reconnect, and
// at the latest when the granted time-out has passed since a server last heard
// from us. A lost connection alone ends nothing. [Client.Serve] runs work once a
// session:
//
//	err := client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
//		// ctx ends with the session; return, and Serve calls again with the next.
//	})
//
// Reads wait for a connection and are repeated when it breaks. A write whose
// connection breaks returns [ErrConnectionLost]: it may or may not have been
// applied. Paths are relative to [Config.Chroot].
//
// # Locks and fenced writes
//
// A [Lock] is kazoo's, on the wire, so that Nodepool, Zuul and Poolkeeper exclude
// each other. [Lock.Try] and [Lock.Acquire] return a [Held], whose context ends
// when the lock is lost. No clock can tell a process in time that it was paused;
// so what is done under a lock is written through it:
//
//	held, err := recipe.NewLock(s, record+"/lock", identifier).Try(ctx)
//	...
//	stat, err := held.Set(ctx, record, data, version)
//
// Each write of a Held is one transaction which first checks that our contender
// still exists. If it does not, nothing is written and the error is
// [ErrFenceLost]. The writes of a Held also find out what became of them when the
// connection breaks. To do work outside of ZooKeeper under a lock, run it in the
// context that [Held.Bind] returns.
//
// A Lock creates its directory but not the record above it, since locking a
// record that was just deleted must not bring it back; [EnsureParents] is for
// locks that stand for themselves. [Session.DeleteTree] removes a record in one
// transaction with the locks below it.
//
// # The tree in memory
//
// A [Tree] follows a subtree by watches, over all sessions. Read it with
// [Tree.Get], [Tree.Children] and [Tree.View]; learn of changes by key with
// [Tree.Subscribe]. What it shows was true a moment ago; after [Tree.Barrier] it
// shows all that was committed before the call, also by others. [TreeOptions] say
// what is followed of each node.
//
// # More recipes
//
//   - [Election] makes one process the leader; [Periodic] is a task of the leader.
//   - [Semaphore] limits what many processes use together, by weight.
//   - [Partition] divides shares of work evenly among processes.
//   - [Queue] holds requests, who works at each, their results, and who waits for them.
//   - [Registration] shows others that we are there, and how we are.
//   - [Blob] names data that is longer than a node may be, in shards.
//   - [Log] is a bounded log with consumers, appended to by the transactions of the changes
//     that it tells of.
//   - [Ltime] gives a logical time, and [Tree.WaitFor] waits for it.
//
// # Errors
//
// All errors wrap one of those below, or the cause of the caller's context, and
// name the operation and the path or host. Compare them with [errors.Is].
package recipe
