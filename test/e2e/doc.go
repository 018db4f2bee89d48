// Package e2e tests the built program on real parts: diskimage-builder, QEMU,
// ZooKeeper, and Python's kazoo as the other party.
package e2e
