// Package sim runs our own code, unchanged, in a world in which everything goes wrong that
// can: agents with clocks of their own, on a model of ZooKeeper, in virtual time. One seed
// decides what happens when, and a judge looks at every transaction.
package sim
