// Package launcher measures the launcher as a process of its own: a real
// ZooKeeper, a pretended cloud, and a requestor written from docs/wire.md.
package launcher
