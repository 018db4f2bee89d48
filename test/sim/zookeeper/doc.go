// Package zookeeper is a model of ZooKeeper servers for simulations: it speaks ZooKeeper's
// bytes over connections in memory, so that clients run on it unchanged, in the bubbles of
// testing/synctest too. Every delay is drawn from a seed, and every fault is a method.
package zookeeper
