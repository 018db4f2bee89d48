// Package singleton does what one launcher does for all: the stock of ready nodes,
// leaks, limits of providers, slots of static ones, what is left behind in the tree,
// locks that others left behind, and which pool offered what.
package singleton
