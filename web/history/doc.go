// Package history is the page of what has ended, and the same as JSON: what a daemon has kept of it.
package history
