// Package dib runs diskimage-builder, or what an image names instead of it, and
// leaves nothing behind however the run ends.
//
// The command runs below a guard: a second process of our own binary that
// stops it when the daemon asks, when the daemon is gone, and when the daemon
// has not renewed its lease in time. See DESIGN.md.
package dib
