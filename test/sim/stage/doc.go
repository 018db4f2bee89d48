// Package stage is what all simulated worlds share: the timeline, the hosts that processes run
// on, and what goes wrong with hosts, networks and ZooKeeper's servers.
package stage
