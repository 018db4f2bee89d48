// Package cloud is the clouds of a simulation: one for all agents, in memory, with virtual
// time and faults that one seed decides.
package cloud
