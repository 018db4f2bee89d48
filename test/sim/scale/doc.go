// Package scale has no code but a test: how what launchers ask of ZooKeeper grows with a site,
// beyond what real servers are measured with.
package scale
