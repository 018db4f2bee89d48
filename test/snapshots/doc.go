// Package snapshots tests guests of the local provider that are resumed from a snapshot of
// their image: on real images, with a real QEMU.
package snapshots
