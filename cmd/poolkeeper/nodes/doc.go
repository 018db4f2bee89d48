// Package nodes has the commands about nodes and node requests.
package nodes
