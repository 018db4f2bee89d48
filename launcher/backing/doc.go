// Package backing is the nodes of other providers that nodes of a provider are slots on: what
// is known of them in the tree, for the provider, and what one launcher does with them for
// all: they are asked for, taken over, and given back.
package backing
