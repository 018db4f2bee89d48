// Package builder keeps the images of a configuration built, uploaded to their
// providers, and cleaned up.
//
// It follows the tree, decides with package plan, and acts under locks: see
// DESIGN.md. What it does not do: launch nodes, serve HTTP, read configuration
// files.
package builder
