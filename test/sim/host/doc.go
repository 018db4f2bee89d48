// Package host is the host of a simulated agent: its clock, its network, and how it stops, goes on and dies.
package host
